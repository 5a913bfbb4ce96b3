import { PassThrough, Readable } from 'node:stream'
import { describe, expect, onTestFinished, test } from 'vitest'
import { FASTIFYS, serveFastify } from '../bindings/served.js'
import { gate } from '../support/gate.js'
import { inTime } from '../support/in-time.js'
import { connectTo, request } from '../support/raw-client.js'

// A stream of which nothing is sent, or nothing any more, may have no end: nobody may wait for it, and whoever opened it, for example
// a cursor, must hear that it is over.

const STREAMS: readonly { readonly what: string; open(over: () => void): unknown }[] = [
  { what: 'a stream of Node', open: (over) => new PassThrough().on('close', over) },
  { what: 'a web stream', open: (over) => new ReadableStream({ cancel: over }) },
]

describe.each(FASTIFYS)('$name', ({ name, create }) => {
  // The HEAD routes that Fastify 4 makes by itself fail at a web stream.
  const ofHead = name === 'Fastify 4' ? STREAMS.filter(({ what }) => what !== 'a web stream') : STREAMS
  test.each(ofHead)('a HEAD is answered although its body has no end: $what', async ({ open }) => {
    const { port, events, idle } = await serveFastify(create, {
      options: { methods: ['HEAD'] },
      routes: (app) => app.get('/', async (_request, reply) => reply.header('X-Total', '17').send(open(() => {}))),
    })
    for (const replayed of [null, 'true']) {
      const answer = await inTime(
        fetch(`http://127.0.0.1:${port}/`, { method: 'HEAD', headers: { 'Idempotency-Key': 'k' } }),
        5_000,
      )
      const { headers } = answer
      expect([answer.status, headers.get('X-Total'), headers.get('Idempotent-Replayed')]).toEqual([200, '17', replayed])
      expect(headers.get('Content-Length')).toBe(null)
    }
    await inTime(idle(), 5_000)
    expect(events.map(({ type }) => type)).toEqual(['claimed', 'completed', 'replayed'])
  })

  test.each(STREAMS)('a 204 is answered although its body has no end: $what', async ({ open }) => {
    const { port } = await serveFastify(create, {
      routes: (app) => app.post('/', async (_request, reply) => reply.code(204).send(open(() => {}))),
    })
    expect((await inTime(request(port, { key: 'k' }), 5_000)).status).toBe(204)
    expect((await request(port, { key: 'k' })).header('Idempotent-Replayed')).toBe('true')
  })

  test.each(STREAMS)('what was being read is closed where the response is ended below: $what', async ({ open }) => {
    const over = gate()
    const { port, events, idle } = await serveFastify(create, {
      routes: (app) =>
        app.post('/', (_request, reply) => {
          reply.send(open(over.open))
          setImmediate(() => reply.raw.end('enough'))
        }),
    })
    const client = connectTo(port)
    onTestFinished(() => void client.socket.destroy())
    client.send({ key: 'k' })
    expect((await client.reply()).body.toString()).toBe('enough')
    await inTime(over.opened, 5_000)
    await inTime(idle(), 5_000)
    expect(events.map(({ type }) => type)).toEqual(['claimed', 'completed'])
    // The connection lives.
    client.send({ key: 'k' })
    expect((await client.reply()).header('Idempotent-Replayed')).toBe('true')
  })

  test('a HEAD of a stream that ends has no length of its own', async () => {
    const { port } = await serveFastify(create, {
      options: { methods: ['HEAD'] },
      routes: (app) => app.get('/', async (_request, reply) => reply.send(Readable.from(['paid']))),
    })
    const { headers } = await fetch(`http://127.0.0.1:${port}/`, {
      method: 'HEAD',
      headers: { 'Idempotency-Key': 'k' },
    })
    expect(headers.get('Content-Length')).toBe(null)
  })
})
