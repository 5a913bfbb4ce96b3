import { fastify } from 'fastify'
import { idempotency } from 'once-per-key/fastify'
import { MemoryStore } from 'once-per-key/memory'
import { expect, onTestFinished, test } from 'vitest'
import { gate } from '../support/gate.js'
import { request } from '../support/raw-client.js'

// What a handler answers after a time limit has answered is ignored.

test.each(['by Fastify', 'below Fastify'])(
  'a time limit that answers %s ends the run, and the handler is not troubled',
  async (how) => {
    const [paying, sent] = [gate(), gate()]
    const late = gate<unknown>()
    const errors: unknown[] = []
    const events: string[] = []
    const app = fastify()
    await app.register(idempotency, {
      store: new MemoryStore(),
      scope: () => 'acme',
      onEvent: ({ type }) => events.push(type),
    })
    app.addHook('onRequest', (_request, reply, done) => {
      void paying.opened.then(() => {
        if (how === 'by Fastify') reply.code(503).send('too late')
        else {
          reply.raw.statusCode = 503
          reply.raw.end('too late')
        }
      })
      done()
    })
    app.addHook('onError', (_request, _reply, error, done) => {
      errors.push(error)
      done()
    })
    app.post('/payouts', async (_request, reply) => {
      paying.open()
      await sent.opened
      try {
        reply.header('X-Paid', '100').raw.setHeader('X-Paid', '200')
        reply.code(201).send({ paid: 100 })
        late.open('ignored')
      } catch (error) {
        late.open(error)
      }
      return reply
    })
    await app.listen({ port: 0, host: '127.0.0.1' })
    onTestFinished(() => app.close())
    const { port } = app.server.address() as { port: number }
    const { status, body } = await request(port, { path: '/payouts', key: 'k' })
    expect([status, String(body)]).toEqual([503, 'too late'])
    sent.open()
    expect(await late.opened).toBe('ignored')
    expect([errors, events]).toEqual([[], ['claimed', 'failed']])
  },
)
