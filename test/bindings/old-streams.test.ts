import { Buffer } from 'node:buffer'
import { PassThrough, Readable, Stream, Transform } from 'node:stream'
import { describe, expect, test } from 'vitest'
import { request } from '../support/raw-client.js'
import { FASTIFYS, type Settings, serveFastify, serveKoa } from './served.js'

// Streams of Node's first years, and of packages that still make them, have no `read`, no `destroy`, and say 'close' right behind
// 'end'. Frameworks pipe them, so they work there.

interface OldStream extends Stream {
  readable: boolean
  pause(): void
  resume(): void
}

/** As `through` and JSONStream make them: nothing but events. */
function ofEvents(pieces: readonly (string | Buffer)[], end: (stream: OldStream) => void = ended): OldStream {
  const waiting = [...pieces]
  let isPaused = false
  const stream = Object.assign(new Stream(), {
    readable: true,
    pause() {
      isPaused = true
    },
    resume() {
      isPaused = false
      setImmediate(flow)
    },
  }) as OldStream
  const flow = (): void => {
    while (!isPaused && waiting.length > 0) stream.emit('data', waiting.shift())
    if (isPaused || !stream.readable) return
    stream.readable = false
    end(stream)
  }
  setImmediate(flow)
  return stream
}

function ended(stream: OldStream): void {
  stream.emit('end')
  stream.emit('close')
}

const PIECES = ['{"paid":', Buffer.from('"zwölf €"'), '}']
const WHOLE = '{"paid":"zwölf €"}'

const SOURCES: readonly { readonly source: string; readonly open: () => unknown; readonly body: string }[] = [
  { source: 'events alone, with close right behind end', open: () => ofEvents(PIECES), body: WHOLE },
  { source: 'events alone, without close', open: () => ofEvents(PIECES, (stream) => stream.emit('end')), body: WHOLE },
  { source: 'events alone, and nothing in it', open: () => ofEvents([]), body: '' },
  {
    source: 'a stream in old style that another pipes into',
    open: () => ofEvents(PIECES).pipe(new PassThrough()),
    body: WHOLE,
  },
  {
    source: 'objects that are text',
    open: () =>
      Readable.from(PIECES).pipe(new Transform({ objectMode: true, transform: (piece, _, done) => done(null, piece) })),
    body: WHOLE,
  },
]

interface On {
  readonly name: string
  serve(source: () => unknown, settings?: Settings): ReturnType<typeof serveKoa>
}

const FRAMEWORKS: readonly On[] = [
  {
    name: 'Koa',
    serve: (source, settings) =>
      serveKoa({
        ...settings,
        handler(ctx) {
          ctx.type = 'application/json'
          ctx.body = source()
        },
      }),
  },
  ...FASTIFYS.map(({ name, create }) => ({
    name,
    serve: (source: () => unknown, settings?: Settings) =>
      serveFastify(create, {
        ...settings,
        routes: (app) => app.post('/', async (_request, reply) => reply.type('application/json').send(source())),
      }),
  })),
]

describe.each(FRAMEWORKS)('$name', ({ serve }) => {
  test.each(SOURCES)('$source: the answer is sent and replayed', async ({ open, body }) => {
    const { port, events } = await serve(open)
    const [first, replay] = [await request(port, { key: 'k' }), await request(port, { key: 'k' })]
    expect([first.status, first.body.toString(), first.header('Idempotent-Replayed')]).toEqual([200, body, undefined])
    expect([replay.status, replay.body.toString(), replay.header('Idempotent-Replayed')]).toEqual([200, body, 'true'])
    expect(events.map(({ type }) => type)).toEqual(['claimed', 'completed', 'replayed'])
  })

  test('more of it than is kept leaves as it comes', async () => {
    const pieces = Array.from({ length: 64 }, (_, i) => Buffer.alloc(1_024, i))
    const { port } = await serve(() => ofEvents(pieces), { options: { maxAnswerBytes: 2_000 } })
    expect((await request(port, { key: 'k' })).body).toEqual(Buffer.concat(pieces))
    expect((await request(port, { key: 'k' })).json()).toMatchObject({ code: 'answer_not_kept' })
  })

  test.each([
    { what: 'an error', end: (stream: OldStream) => void stream.emit('error', new Error('The source broke')) },
    { what: 'its close before its end', end: (stream: OldStream) => void stream.emit('close') },
  ])('what a source fails with is a failure: $what', async ({ end }) => {
    let runs = 0
    const { port, events } = await serve(() => (++runs === 1 ? ofEvents(PIECES, end) : 'paid'))
    expect((await request(port, { key: 'k' })).status).toBe(500)
    expect((await request(port, { key: 'k' })).status).toBe(200)
    expect(events.map(({ type }) => type)).toEqual(['claimed', 'failed', 'claimed', 'completed'])
  })

  test('a stream of values that are neither text nor bytes is a failure, and the process lives', async () => {
    let runs = 0
    const { port, events } = await serve(() => (++runs === 1 ? Readable.from([{ paid: 1 }]) : 'paid'))
    expect((await request(port, { key: 'k' })).status).toBe(500)
    expect((await request(port, { key: 'k' })).status).toBe(200)
    expect(events.map(({ type }) => type)).toEqual(['claimed', 'failed', 'claimed', 'completed'])
  })
})
