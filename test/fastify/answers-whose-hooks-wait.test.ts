import { type AddressInfo, connect } from 'node:net'
import { Readable } from 'node:stream'
import type { FastifyInstance } from 'fastify'
import { idempotency, singleTenant } from 'once-per-key/fastify'
import { MemoryStore } from 'once-per-key/memory'
import { describe, expect, onTestFinished, test } from 'vitest'
import { gate } from '../support/gate.js'
import { FASTIFYS } from '../versions/fastify.js'

// A replay, or a refusal, whose `onSend` hooks waited for something was not sent yet when the plugin's hook ended. Fastify went on to
// the handler, which paid again.

const VERSIONS = FASTIFYS.map(({ name, create }) => ({ version: name, create }))

describe.each(VERSIONS)('$version', ({ create }) => {
  async function serve(around: (app: FastifyInstance) => unknown, handler: () => unknown = () => ({ id: 'po_1' })) {
    let runs = 0
    const app = create({ forceCloseConnections: true })
    onTestFinished(() => app.close())
    await app.register(idempotency, { store: new MemoryStore(), scope: singleTenant, methods: ['POST', 'HEAD'] })
    await around(app)
    app.route({
      method: ['POST', 'HEAD'],
      url: '/payouts',
      async handler() {
        runs++
        return handler()
      },
    })
    await app.listen({ port: 0, host: '127.0.0.1' })
    const { port } = app.server.address() as AddressInfo
    async function send(method = 'POST') {
      const headers = { 'Idempotency-Key': 'k' }
      const response = await fetch(`http://127.0.0.1:${port}/payouts`, { method, headers })
      return { status: response.status, body: await response.text() }
    }
    return { app, port, send, runs: () => runs }
  }

  const inTheNextTurn = (app: FastifyInstance) =>
    app.addHook('onSend', async (_request, _reply, payload) => {
      await new Promise(setImmediate)
      return payload
    })

  test('a replay whose onSend hooks wait does not run the handler', async () => {
    const { send, runs } = await serve(inTheNextTurn)
    const first = await send()
    expect(await send()).toEqual(first)
    expect(runs()).toBe(1)
  })

  test('nor does a refusal', async () => {
    const paying = gate()
    const { send, runs } = await serve(inTheNextTurn, () => paying.opened)
    const first = send()
    await expect.poll(runs).toBe(1)
    expect(await send()).toMatchObject({ status: 409, body: expect.stringContaining('in_flight') })
    paying.open()
    expect((await first).status).toBe(200)
    expect(runs()).toBe(1)
  })

  test('nor does a replay to a HEAD, which has no body', async () => {
    const { send, runs } = await serve(
      () => {},
      () => Readable.from(['paid']),
    )
    const first = await send('HEAD')
    expect(await send('HEAD')).toEqual(first)
    expect(runs()).toBe(1)
  })

  test('nor does a replay whose client leaves while they wait, and no later hook is called', async () => {
    const sending = gate()
    const waiting = gate()
    const closed = gate()
    let isReplay = false
    let hooks = 0
    const { app, port, send, runs } = await serve((app) => {
      app.addHook('onSend', async (_request, _reply, payload) => {
        if (!isReplay) return payload
        sending.open()
        await waiting.opened
        return payload
      })
      app.addHook('onRequest', async (_request, reply) => {
        reply.raw.once('close', closed.open)
      })
      app.addHook('preHandler', async () => void hooks++)
    })
    await send()
    isReplay = true
    const client = connect(port, '127.0.0.1')
    client.write('POST /payouts HTTP/1.1\r\nHost: x\r\nIdempotency-Key: k\r\nContent-Length: 0\r\n\r\n')
    await sending.opened
    client.destroy()
    await closed.opened
    await new Promise(setImmediate)
    waiting.open()
    await new Promise(setImmediate)
    await app.idempotency.idle()
    expect([runs(), hooks]).toEqual([1, 1])
  })
})
