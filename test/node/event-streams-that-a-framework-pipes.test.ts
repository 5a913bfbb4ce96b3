import { once as event } from 'node:events'
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { PassThrough, pipeline, Readable } from 'node:stream'
import { type FastifyInstance, fastify } from 'fastify'
import Koa from 'koa'
import * as onFastify from 'once-per-key/fastify'
import * as onKoa from 'once-per-key/koa'
import { MemoryStore } from 'once-per-key/memory'
import { describe, expect, onTestFinished, test } from 'vitest'
import { gate } from '../support/gate.js'
import { connectTo, request } from '../support/raw-client.js'
import { FASTIFYS } from '../versions/fastify.js'

// Fastify destroys the response of a stream whose client leaves, Koa its source alone: the first counted as broken off, so that
// a retry ran again; the second never ended, and its key stayed in flight. A client that leaves breaks nothing.

type Source = () => Readable | ReadableStream<Uint8Array>

interface Served {
  readonly port: number
  idle(): Promise<void>
}

const options = () => ({ store: new MemoryStore(), scope: onKoa.singleTenant })

async function serveKoa(source: Source): Promise<Served> {
  const once = onKoa.idempotency(options())
  const app = new Koa()
  app.silent = true
  app.use(once).use((ctx) => {
    ctx.type = 'text/event-stream'
    ctx.body = source()
  })
  const server = createServer(app.callback()).listen(0, '127.0.0.1')
  await event(server, 'listening')
  onTestFinished(() => {
    server.closeAllConnections()
    server.close()
  })
  return { port: (server.address() as AddressInfo).port, idle: () => once.idle() }
}

const serveFastify =
  (create: typeof fastify, around?: (app: FastifyInstance) => unknown) =>
  async (source: Source): Promise<Served> => {
    const app = create({ forceCloseConnections: true })
    onTestFinished(() => app.close())
    await app.register(onFastify.idempotency, options())
    around?.(app)
    app.post('/payouts', (_request, reply) => void reply.type('text/event-stream').send(source()))
    await app.listen({ port: 0, host: '127.0.0.1' })
    return { port: (app.server.address() as AddressInfo).port, idle: () => app.idempotency.idle() }
  }

/** As compression does. */
function throughAnother(app: FastifyInstance): void {
  app.addHook('onSend', (_request, _reply, payload, done) => {
    const isStream = payload instanceof Readable
    done(null, isStream ? pipeline(payload, new PassThrough(), () => {}) : payload)
  })
}

const FRAMEWORKS = [
  { name: 'Koa', serve: serveKoa },
  ...FASTIFYS.map(({ name, create }) => ({ name, serve: serveFastify(create) })),
  { name: 'Fastify 5 with a hook that pipes the stream', serve: serveFastify(fastify, throughAnother) },
]

const SOURCES: readonly {
  readonly source: string
  readonly open: () => { stream: Source; closed: Promise<unknown> }
}[] = [
  {
    source: 'a stream of Node that has nothing more to say',
    open() {
      const stream = new PassThrough()
      stream.write('data: 1\n\n')
      return { stream: () => stream, closed: event(stream, 'close') }
    },
  },
  {
    source: 'a web stream that has nothing more to say',
    open() {
      const closing = gate()
      const start = (controller: ReadableStreamDefaultController<Uint8Array>) =>
        controller.enqueue(Buffer.from('data: 1\n\n'))
      return { stream: () => new ReadableStream({ start, cancel: () => closing.open() }), closed: closing.opened }
    },
  },
]

describe.each(FRAMEWORKS)('$name', ({ serve }) => {
  test.each(SOURCES)('$source is closed when its client leaves, and has ended', async ({ open }) => {
    const { stream, closed } = open()
    const { port, idle } = await serve(stream)
    const client = connectTo(port)
    client.send({ path: '/payouts', key: 'k' })
    while (!client.received().includes('data: 1')) await event(client.socket, 'data')
    expect((await request(port, { path: '/payouts', key: 'k' })).json()).toMatchObject({ code: 'in_flight' })
    client.socket.destroy()
    await closed
    await idle()
    expect((await request(port, { path: '/payouts', key: 'k' })).json()).toMatchObject({ code: 'answer_not_kept' })
  })

  test('a source that fails while its client listens leaves the outcome unknown', async () => {
    const source = new PassThrough()
    source.write('data: 1\n\n')
    const retried = new PassThrough()
    const sources = [source, retried.end('data: again\n\n')]
    const { port, idle } = await serve(() => sources.shift() as PassThrough)
    const client = connectTo(port)
    client.send({ path: '/payouts', key: 'k' })
    while (!client.received().includes('data: 1')) await event(client.socket, 'data')
    source.destroy(new Error('the source broke'))
    await client.closed
    await idle()
    expect((await request(port, { path: '/payouts', key: 'k' })).body.toString()).toBe('data: again\n\n')
  })
})
