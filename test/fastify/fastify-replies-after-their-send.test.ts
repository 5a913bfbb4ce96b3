import { Readable } from 'node:stream'
import type { FastifyReply, FastifyRequest } from 'fastify'
import { idempotency, singleTenant } from 'once-per-key/fastify'
import { describe, expect, onTestFinished, test } from 'vitest'
import { A_DRIVER } from '../adapters/sqlite/drivers.js'
import { openStore } from '../adapters/sqlite/open-store.js'
import { failingStore } from '../support/failing-store.js'
import { FASTIFYS } from '../versions/fastify.js'

// While the store was asked, whatever followed `reply.send` changed the status and the headers that were sent with the body:
// a client was told 500 for what its record held as a success.

const VERSIONS = FASTIFYS.map(({ name, create }) => ({ version: name, create }))

const LATE: readonly { readonly name: string; readonly follow: (reply: FastifyReply) => unknown }[] = [
  {
    name: 'a throw',
    follow() {
      throw new Error('the mail server is down')
    },
  },
  { name: 'a rejection', follow: () => Promise.reject(new Error('the mail server is down')) },
  { name: 'a second answer', follow: (reply) => void reply.code(503).header('X-Late', '1').send({ error: 'late' }) },
  { name: 'a status and headers', follow: (reply) => void reply.code(400).header('X-Late', '1').type('text/html') },
  { name: 'a header less', follow: (reply) => void reply.removeHeader('X-Paid') },
  {
    name: 'a status and a header of Node’s response',
    follow({ raw }) {
      raw.statusCode = 503
      raw.statusMessage = 'Late'
      raw.setHeader('X-Late', '1')
    },
  },
]

/** Written below Fastify, as a time limit does that knows nothing of replies. */
const BELOW: typeof LATE = [
  { name: 'a head of Node’s response', follow: ({ raw }) => void raw.writeHead(503, { 'X-Late': '1' }) },
  { name: 'a whole answer of Node’s response', follow: ({ raw }) => void raw.writeHead(503).end('late') },
  { name: 'bytes', follow: ({ raw }) => void raw.write('late') },
  { name: 'the end of Node’s response', follow: ({ raw }) => void raw.end() },
]

const PAYLOADS = [
  { payload: 'JSON', payloadOf: () => ({ id: 'po_1' }) },
  { payload: 'a stream', payloadOf: () => Readable.from(['{"id":"po_1"}'], { objectMode: false }) },
]

describe.each(VERSIONS)('$version', ({ create }) => {
  async function serve(
    handler: (request: FastifyRequest, reply: FastifyReply) => unknown,
    store: Parameters<typeof idempotency>[1]['store'] = failingStore(),
  ) {
    const app = create()
    onTestFinished(() => app.close())
    await app.register(idempotency, { store, scope: singleTenant })
    app.post('/payouts', handler as never)
    return async () => {
      const headers = { 'idempotency-key': 'k' }
      const reply = await app.inject({ method: 'POST', url: '/payouts', headers })
      const { statusCode, statusMessage, body } = reply
      const [type, paid, late, replayed] = ['content-type', 'x-paid', 'x-late', 'idempotent-replayed'].map(
        (name) => reply.headers[name],
      )
      return { statusCode, statusMessage, body, type, paid, late, replayed }
    }
  }

  const PAID = {
    statusCode: 201,
    statusMessage: 'Created',
    body: '{"id":"po_1"}',
    type: 'application/json',
    paid: 'yes',
  }

  describe.each(PAYLOADS)('after $payload', ({ payloadOf }) => {
    test.each(LATE)('$name changes nothing', async ({ follow }) => {
      const post = await serve(async (_request, reply) => {
        reply.code(201).header('X-Paid', 'yes').type('application/json').send(payloadOf())
        await follow(reply)
      })
      const first = await post()
      expect(first).toMatchObject({ ...PAID, type: expect.stringContaining(PAID.type) })
      expect([first.late, first.replayed]).toEqual([undefined, undefined])
      expect(await post()).toEqual({ ...first, replayed: 'true' })
    })
  })

  test.each(BELOW)(
    'what is written below Fastify while the answer is stored changes nothing: $name',
    async ({ follow }) => {
      const post = await serve(async (_request, reply) => {
        reply.code(201).header('X-Paid', 'yes').type('application/json').send({ id: 'po_1' })
        follow(reply)
      })
      const first = await post()
      expect(first).toMatchObject({ ...PAID, type: expect.stringContaining(PAID.type) })
      expect([first.late, first.replayed]).toEqual([undefined, undefined])
      expect(await post()).toEqual({ ...first, replayed: 'true' })
    },
  )

  test('nor does what follows in and behind a transaction', async () => {
    const { store } = openStore(A_DRIVER)
    await store.migrate()
    const post = await serve(async (request, reply) => {
      const work = () => {
        reply.code(201).header('X-Paid', 'yes').send({ id: 'po_1' })
        reply.code(400).header('X-Late', '1')
      }
      await store.transaction(request.idempotency, work, { allowEmpty: true })
      throw new Error('the mail server is down')
    }, store)
    const first = await post()
    expect(first).toMatchObject({ ...PAID, type: 'application/json; charset=utf-8' })
    expect(first.late).toBeUndefined()
    expect(await post()).toEqual({ ...first, replayed: 'true' })
  })
})
