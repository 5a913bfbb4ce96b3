import type { ServerResponse } from 'node:http'
import { PassThrough } from 'node:stream'
import { describe, expect, onTestFinished, test } from 'vitest'
import { failingStore } from '../support/failing-store.js'
import { type Gate, gate } from '../support/gate.js'
import { connectTo, request } from '../support/raw-client.js'
import { FASTIFYS, type Served, type Settings, serveFastify, serveKoa } from './served.js'

// Some code knows nothing of replies and contexts: it writes to Node's own response, while the framework's answer is read from a
// stream, or is being stored. Nobody hears what the library would throw then, so the process would end.

interface Answering {
  /** Node's response, in the turn in which the handler has answered. */
  readonly below: (raw: ServerResponse) => void
  readonly body: () => unknown
}

interface On {
  readonly name: string
  serve(answering: Answering, settings?: Settings): Promise<Served>
}

const FRAMEWORKS: readonly On[] = [
  {
    name: 'Koa',
    serve: ({ below, body }, settings) =>
      serveKoa({
        ...settings,
        handler(ctx) {
          ctx.status = 201
          ctx.body = body()
          below(ctx.res)
        },
      }),
  },
  ...FASTIFYS.map(({ name, create }) => ({
    name,
    serve: ({ below, body }: Answering, settings?: Settings) =>
      serveFastify(create, {
        ...settings,
        routes: (app) =>
          app.post('/', (_request, reply) => {
            reply.code(201).send(body())
            below(reply.raw)
          }),
      }),
  })),
]

/** What ends the process, were it not a test's. */
function unheard(): unknown[] {
  const heard: unknown[] = []
  const hear = (error: unknown) => void heard.push(error)
  const before = process.listeners('unhandledRejection')
  process.removeAllListeners('unhandledRejection').on('unhandledRejection', hear)
  onTestFinished(() => {
    process.removeListener('unhandledRejection', hear)
    for (const listener of before) process.on('unhandledRejection', listener)
  })
  return heard
}

/** Behind what is to follow a turn, such as the report of a rejection. */
async function aFewTurns(): Promise<void> {
  for (let i = 0; i < 5; i++) await new Promise((resolve) => setImmediate(resolve))
}

/** Writes once the answer is being read. */
const soon = (gate: Gate, write: (raw: ServerResponse) => void) => (raw: ServerResponse) =>
  setImmediate(() => {
    write(raw)
    gate.open()
  })

describe.each(FRAMEWORKS)('$name', ({ serve }) => {
  test('a time limit that answers while a stream is read is the answer', async () => {
    const errors = unheard()
    const limited = gate()
    const source = new PassThrough()
    source.write('pa')
    const below = soon(limited, (raw) => raw.writeHead(503, { 'Content-Type': 'text/plain' }).end('too late'))
    const { port, events, idle } = await serve({ below, body: () => source })
    const client = connectTo(port)
    onTestFinished(() => void client.socket.destroy())
    client.send({ key: 'k' })
    await limited.opened
    const first = await client.reply()
    source.end('id')
    await idle()
    await aFewTurns()
    expect([first.status, first.body.toString()]).toEqual([503, 'too late'])
    expect(events.map(({ type }) => type)).toEqual(['claimed', 'failed'])
    expect(errors).toEqual([])
  })

  test('a head that is written while a stream is read is followed by the stream', async () => {
    const errors = unheard()
    const begun = gate()
    const source = new PassThrough()
    source.write('pa')
    const below = soon(begun, (raw) => raw.writeHead(202, { 'Content-Type': 'text/plain' }))
    const { port } = await serve({ below, body: () => source })
    const client = connectTo(port)
    onTestFinished(() => void client.socket.destroy())
    client.send({ key: 'k' })
    await begun.opened
    source.end('id')
    const first = await client.reply()
    const replay = await request(port, { key: 'k' })
    await aFewTurns()
    expect([first.status, first.body.toString(), first.header('Content-Type')]).toEqual([202, 'paid', 'text/plain'])
    expect([replay.status, replay.body.toString(), replay.header('Content-Type')]).toEqual([202, 'paid', 'text/plain'])
    expect(replay.header('Idempotent-Replayed')).toBe('true')
    expect(errors).toEqual([])
  })

  test('a source that fails behind a head that was written cuts the connection', async () => {
    const errors = unheard()
    const begun = gate()
    const source = new PassThrough()
    const below = soon(begun, (raw) => void raw.writeHead(202).write('pa'))
    const { port, events, idle } = await serve({ below, body: () => source })
    const client = connectTo(port)
    client.send({ key: 'k' })
    await begun.opened
    source.destroy(new Error('The source broke'))
    await client.closed
    await idle()
    await aFewTurns()
    expect(events.map(({ type }) => type)).toEqual(['claimed', 'failed'])
    expect(errors).toEqual([])
  })

  test('a head that was written before the handler answers leaves the answer to Node’s response', async () => {
    const errors = unheard()
    const { port, idle } = await serve({
      below: (raw) => raw.end('id'),
      body: () => new PassThrough(),
    })
    expect((await request(port, { key: 'k' })).body.toString()).toBe('id')
    await idle()
    await aFewTurns()
    expect(errors).toEqual([])
  })

  test.each([
    { what: 'a whole answer', below: (raw: ServerResponse) => void raw.writeHead(503, { 'X-Late': '1' }).end('late') },
    { what: 'a head', below: (raw: ServerResponse) => void raw.writeHead(503, { 'X-Late': '1' }) },
    { what: 'an end', below: (raw: ServerResponse) => void raw.end('late') },
  ])('what is written while the answer is stored changes nothing: $what', async ({ below }) => {
    const errors = unheard()
    const store = failingStore()
    const storing = gate()
    const stored = gate()
    let response: ServerResponse | undefined
    store.always('complete', async (send) => {
      storing.open()
      await stored.opened
      return send()
    })
    const keep = (raw: ServerResponse) => {
      response = raw
    }
    const { port } = await serve({ below: keep, body: () => 'paid' }, { options: { store } })
    const client = connectTo(port)
    onTestFinished(() => void client.socket.destroy())
    client.send({ key: 'k' })
    await storing.opened
    below(response as ServerResponse)
    stored.open()
    const first = await client.reply()
    const replay = await request(port, { key: 'k' })
    expect([first.status, first.body.toString(), first.header('X-Late')]).toEqual([201, 'paid', undefined])
    expect([replay.status, replay.body.toString(), replay.header('Idempotent-Replayed')]).toEqual([201, 'paid', 'true'])
    expect(errors).toEqual([])
  })
})
