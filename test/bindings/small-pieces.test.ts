import { Buffer } from 'node:buffer'
import { Readable, Transform } from 'node:stream'
import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import { BINDINGS } from '../support/bindings.js'
import { request } from '../support/raw-client.js'
import { serve } from '../support/serve.js'
import { FASTIFYS, type Settings, serveFastify, serveKoa } from './served.js'

// What a handler writes in many small pieces is held, and sent, in few large ones: its cost is that of its bytes.

const PIECE = Buffer.from('8 bytes.')
const MANY = 20_000
const WHOLE = Buffer.alloc(MANY * PIECE.byteLength, PIECE)

/** Counts in how many pieces a body comes. */
function counting() {
  const counter = new Transform({
    transform(chunk, _encoding, done) {
      seen.pieces++
      done(null, chunk)
    },
  })
  const seen = { pieces: 0, counter }
  return seen
}

type Seen = ReturnType<typeof counting>

interface On {
  readonly name: string
  /** `seen` is where the body passes once it is sent. */
  serve(source: () => Readable, seen: Seen, settings: Settings): ReturnType<typeof serveKoa>
}

const FRAMEWORKS: readonly On[] = [
  {
    name: 'Koa',
    serve: (source, seen, settings) =>
      serveKoa({
        ...settings,
        before: [
          async (ctx, next) => {
            await next()
            if (ctx.body instanceof Readable) ctx.body = ctx.body.pipe(seen.counter)
          },
        ],
        handler(ctx) {
          ctx.body = source()
        },
      }),
  },
  ...FASTIFYS.map(({ name, create }) => ({
    name,
    serve: (source: () => Readable, seen: Seen, settings: Settings) =>
      serveFastify(create, {
        ...settings,
        routes(app) {
          app.addHook('onSend', async (_request, _reply, payload) =>
            payload instanceof Readable ? payload.pipe(seen.counter) : payload,
          )
          app.post('/', async (_request, reply) => reply.send(source()))
        },
      }),
  })),
]

describe.each(FRAMEWORKS)('$name', ({ serve: on }) => {
  test('a large answer in small pieces leaves in large ones', async () => {
    const seen = counting()
    const source = () => Readable.from(Array(MANY).fill(PIECE))
    const { port } = await on(source, seen, { options: { maxAnswerBytes: WHOLE.byteLength / 2 } })
    expect((await request(port, { key: 'k' })).body.equals(WHOLE)).toBe(true)
    expect(seen.pieces).toBeGreaterThan(0)
    expect(seen.pieces).toBeLessThan(WHOLE.byteLength / 1_024)
  })
})

describe.each(BINDINGS)('$name', (binding) => {
  test('an answer in pieces of any size is sent and replayed as it was written', async () => {
    const sizes = fc.array(fc.nat({ max: 40 }), { minLength: 1, maxLength: 5_000, size: 'max' })
    await fc.assert(
      fc.asyncProperty(sizes, async (lengths) => {
        const pieces = lengths.map((length, i) => Buffer.alloc(length, i))
        const { port, close } = await serve(binding, (_req, res) => {
          for (const piece of pieces) res.write(piece)
          res.end()
        })
        const [first, replay] = [await request(port, { key: 'k' }), await request(port, { key: 'k' })]
        expect(first.body.equals(Buffer.concat(pieces))).toBe(true)
        expect(replay.body.equals(first.body)).toBe(true)
        expect(replay.header('Idempotent-Replayed')).toBe('true')
        await close()
      }),
      { numRuns: 5 },
    )
  })
})
