import { Readable } from 'node:stream'
import type { FastifyInstance, FastifyReply } from 'fastify'
import { idempotency, singleTenant } from 'once-per-key/fastify'
import { MemoryStore } from 'once-per-key/memory'
import { describe, expect, onTestFinished, test } from 'vitest'
import { failingStore } from '../support/failing-store.js'
import { FASTIFYS } from '../versions/fastify.js'

// What Fastify threw when it was given an answer that it cannot send was caught by nobody if the store was asynchronous, and
// ended the process. If it was not, the record stood as completed, so that a retry was refused.

const VERSIONS = FASTIFYS.map(({ name, create }) => ({ version: name, create }))
const STORES = [
  { store: 'a synchronous store', storeOf: () => new MemoryStore() },
  { store: 'an asynchronous store', storeOf: () => failingStore() },
]
const CASES = VERSIONS.flatMap((version) => STORES.map((store) => ({ ...version, ...store })))

const NOT_LATIN = 'attachment; filename="発票.pdf"'

const UNSENDABLE: readonly { readonly name: string; readonly send: (reply: FastifyReply) => unknown }[] = [
  { name: 'a header', send: (reply) => reply.header('Content-Disposition', NOT_LATIN).send({ id: 1 }) },
  {
    name: 'a header of a stream',
    send: (reply) => reply.header('Content-Disposition', NOT_LATIN).send(Readable.from(['paid'])),
  },
  { name: 'an object that is no JSON', send: (reply) => reply.type('text/plain').send({ id: 1 }) },
  { name: 'a web stream that somebody reads', send: (reply) => reply.send(taken(new ReadableStream())) },
  { name: 'a Response whose body somebody reads', send: (reply) => reply.send(takenBody(new Response('paid'))) },
  { name: 'a Response whose body was read', send: async (reply) => reply.send(await read(new Response('paid'))) },
]

function taken(stream: ReadableStream): ReadableStream {
  stream.getReader()
  return stream
}

function takenBody(response: Response): Response {
  taken(response.body as ReadableStream)
  return response
}

async function read(response: Response): Promise<Response> {
  await response.text()
  return response
}

describe.each(CASES)('$version, $store', ({ version, create, storeOf }) => {
  async function serve(handler: (reply: FastifyReply) => unknown, around?: (app: FastifyInstance) => unknown) {
    const logged: string[] = []
    const outcomes: unknown[] = []
    const app = create({ logger: { stream: { write: (line: string) => void logged.push(JSON.parse(line).msg) } } })
    onTestFinished(() => app.close())
    const bare = create()
    onTestFinished(() => bare.close())
    await app.register(idempotency, { store: storeOf(), scope: singleTenant })
    for (const each of [app, bare]) {
      await around?.(each)
      each.post('/payouts', async (request, reply) => {
        if (each === app) outcomes.push(request.idempotency?.previousOutcome)
        return outcomes.length < 2 ? handler(reply.code(201)) : 'paid'
      })
    }
    const post = (to = app) => to.inject({ method: 'POST', url: '/payouts', headers: { 'idempotency-key': 'k' } })
    return { post, own: () => post(bare), logged, outcomes }
  }

  test.each(UNSENDABLE)('$name that cannot be sent is an error, and its outcome is unknown', async ({ send }) => {
    const { post, own, outcomes } = await serve(send)
    const [first, unprotected] = [await post(), await own()]
    expect([first.statusCode, first.body]).toEqual([500, unprotected.body])
    expect((await post()).body).toBe('paid')
    expect(outcomes).toEqual(['none', 'unknown'])
  })

  test.each(UNSENDABLE)('$name that cannot be sent goes to the error handler of the application', async ({ send }) => {
    const { post, own } = await serve(send, (app) =>
      app.setErrorHandler((_error, _request, reply) => {
        return reply.removeHeader('Content-Disposition').code(503).send({ page: 'sorry' })
      }),
    )
    const [first, unprotected] = [await post(), await own()]
    expect([first.statusCode, first.body]).toEqual([503, '{"page":"sorry"}'])
    expect(unprotected.body).toBe(first.body)
    expect((await post()).body).toBe('paid')
  })

  test('a body that somebody reads already fails with Fastify’s own code', async () => {
    const { post } = await serve((reply) => reply.send(taken(new ReadableStream())))
    // Fastify 4 leaves it to Node.
    const code = version.startsWith('Fastify 4') ? 'ERR_INVALID_STATE' : 'FST_ERR_REP_READABLE_STREAM_LOCKED'
    expect((await post()).json()).toMatchObject({ code })
  })

  test('an object that a later hook of onSend turns into text is sent', async () => {
    const around = (app: FastifyInstance) =>
      app.addHook('onSend', async (_request, _reply, payload) =>
        typeof payload === 'string' ? payload : JSON.stringify(payload),
      )
    const { post } = await serve((reply) => reply.type('text/plain').send({ id: 1 }), around)
    expect((await post()).body).toBe('{"id":1}')
    expect((await post()).headers).toMatchObject({ 'idempotent-replayed': 'true' })
  })

  test('what cannot be sent for a later hook is stored, and said in the log', async () => {
    const around = (app: FastifyInstance) =>
      app.addHook('onSend', (_request, reply, _payload, done) => {
        if (reply.statusCode === 201) reply.header('X-Late', '遅い')
        else reply.removeHeader('X-Late')
        done()
      })
    const { post, logged, outcomes } = await serve((reply) => reply.send({ id: 1 }), around)
    expect((await post()).statusCode).toBe(500)
    expect(logged).toContain('a stored answer could not be sent')
    await post()
    expect(outcomes).toEqual(['none'])
  })
})
