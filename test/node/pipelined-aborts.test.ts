import type { ServerResponse } from 'node:http'
import { describe, expect, test } from 'vitest'
import { BINDINGS, type Step } from '../support/bindings.js'
import { gate } from '../support/gate.js'
import { connectTo, request } from '../support/raw-client.js'
import { serve } from '../support/serve.js'

// From Node 24 on, a connection that closes destroys the responses that wait for their turn on it, by `res.destroy()`. That
// was taken for the handler's own: a client that left in front of a pipelined response made a failure of a run that went on.

describe.each(BINDINGS)('$name', (binding) => {
  test.each([
    { name: 'a held answer', begin: () => {}, status: 200 },
    { name: 'a stream', begin: (res: ServerResponse) => res.flushHeaders(), status: 409 },
  ])('$name whose connection closes before its turn is completed all the same', async ({ begin, status }) => {
    const begun = gate()
    const closed = gate()
    const order: string[] = []
    const handler: Step = async (req, res) => {
      if (req.url === '/first') return
      for (const event of ['finish', 'close']) res.once(event, () => order.push(event))
      begin(res)
      begun.open()
      await closed.opened
      order.push('end')
      res.end('paid')
    }
    const { port, server, once, events } = await serve(binding, handler)
    server.once('connection', (socket) => socket.once('close', () => setImmediate(() => closed.open())))
    const client = connectTo(port)
    client.send({ path: '/first' })
    client.send({ path: '/second', key: 'k' })
    await begun.opened
    client.socket.destroy()
    await closed.opened
    await once.idle()
    expect(events.map(({ type }) => type)).toEqual(['claimed', 'completed'])
    expect(order[0]).toBe('end')
    expect((await request(port, { path: '/second', key: 'k' })).status).toBe(status)
  })

  test('a response that its handler destroys before its turn is a failure', async () => {
    const begun = gate()
    const handler: Step = (req, res) => {
      if (req.url === '/first') return
      res.destroy()
      begun.open()
    }
    const { port, once, events } = await serve(binding, handler)
    const client = connectTo(port)
    client.send({ path: '/first' })
    client.send({ path: '/second', key: 'k' })
    await begun.opened
    await once.idle()
    client.socket.destroy()
    expect(events.map(({ type }) => type)).toEqual(['claimed', 'failed'])
  })
})
