import type { Socket } from 'node:net'
import { describe, expect, test } from 'vitest'
import { failingStore } from '../../support/failing-store.js'
import { gate } from '../../support/gate.js'
import { ON_FASTIFY } from './frameworks/fastify.js'
import { FRAMEWORKS } from './frameworks/index.js'
import { onKoa } from './frameworks/koa.js'
import { ON_NODE } from './frameworks/on-node.js'
import { REPLY_STYLES } from './replies.js'
import { essenceOf } from './same-reply.js'
import { serve } from './serve.js'

const KEPT = 1_024
const options = { maxAnswerBytes: KEPT }
const OCTETS = [['Content-Type', 'application/octet-stream']] as const
const EVENTS = [['Content-Type', 'text/event-stream']] as const
const chunk = (byte: number, length = KEPT) => new Uint8Array(length).fill(byte)

describe.each(FRAMEWORKS)('$name', (framework) => {
  test.each(REPLY_STYLES.filter(({ reply }) => reply().stream !== undefined))(
    '$name: the first answer is the handler’s own, and a retry replays it',
    async ({ reply }) => {
      const unprotected = await serve(framework, reply, { isProtected: false })
      const serving = await serve(framework, reply)

      const own = await unprotected.send()
      const first = await serving.send()
      const replay = await serving.send()

      expect(essenceOf(first)).toEqual(essenceOf(own))
      expect(essenceOf(replay)).toEqual(essenceOf(first))
      expect(first.lines('Idempotent-Replayed')).toEqual([])
      expect(replay.lines('Idempotent-Replayed')).toEqual(['true'])
      expect(serving.runs()).toBe(1)
    },
  )

  test('what is more than is kept leaves while its handler writes it, and is in flight until its end', async () => {
    const end = gate()
    const stream = async function* () {
      yield chunk(1)
      yield chunk(2)
      await end.opened
      yield chunk(3)
    }
    const serving = await serve(framework, () => ({ stream: stream(), headers: OCTETS }), { options })
    const client = serving.open()
    await client.firstByte
    expect((await serving.send()).json()).toMatchObject({ code: 'in_flight' })
    end.open()
    expect((await client.reply()).body).toEqual(Buffer.concat([chunk(1), chunk(2), chunk(3)]))
    expect((await serving.send()).json()).toMatchObject({ code: 'answer_not_kept' })
  })

  test('an event stream leaves event by event', async () => {
    const end = gate()
    const stream = async function* () {
      yield Buffer.from('data: 1\n\n')
      await end.opened
      yield Buffer.from('data: 2\n\n')
    }
    const serving = await serve(framework, () => ({ stream: stream(), headers: EVENTS }))
    const client = serving.open()
    while (!client.received().includes('data: 1')) await new Promise((resolve) => client.socket.once('data', resolve))
    expect((await serving.send()).json()).toMatchObject({ code: 'in_flight' })
    end.open()
    expect((await client.reply()).body.toString()).toBe('data: 1\n\ndata: 2\n\n')
    expect((await serving.send()).json()).toMatchObject({ code: 'answer_not_kept' })
  })

  test('with `streams`, an answer of that content type leaves piece by piece, and any other is held', async () => {
    const end = gate()
    const stream = async function* () {
      yield Buffer.from('{"word":"pay"}\n')
      await end.opened
      yield Buffer.from('{"word":"once"}\n')
    }
    const headers = [['Content-Type', 'application/x-ndjson; charset=utf-8']] as const
    const streams = (type: string) => type.startsWith('application/x-ndjson')
    const serving = await serve(framework, () => ({ stream: stream(), headers }), { options: { streams } })
    const client = serving.open()
    while (!client.received().includes('pay')) await new Promise((resolve) => client.socket.once('data', resolve))
    expect((await serving.send()).json()).toMatchObject({ code: 'in_flight' })
    end.open()
    expect((await client.reply()).body.toString()).toBe('{"word":"pay"}\n{"word":"once"}\n')
    expect((await serving.send()).json()).toMatchObject({ code: 'answer_not_kept' })

    const piece = async function* () {
      yield chunk(1)
    }
    const held = await serve(framework, () => ({ stream: piece(), headers: OCTETS }), { options: { streams } })
    const first = await held.send()
    expect((await held.send()).body).toEqual(first.body)
  })

  test('a source is read no faster than its client reads', async () => {
    const LENGTH = 2 ** 16
    const MOST = 1_000
    let written = 0
    let isLeft = false
    const stream = async function* () {
      for (; written < MOST && !isLeft; written++) {
        yield chunk(1, LENGTH)
        await new Promise((resolve) => setImmediate(resolve))
      }
    }
    const serving = await serve(framework, () => ({ stream: stream(), headers: OCTETS }), { options })
    const client = serving.open()
    await client.firstByte
    client.socket.pause()
    let before = -1
    while (before !== written) {
      before = written
      for (let i = 0; i < 50; i++) await new Promise((resolve) => setImmediate(resolve))
    }
    expect(written).toBeLessThan(MOST)
    isLeft = true
    client.socket.destroy()
    await serving.once.idle()
  })

  test('a client that stays and reads no more has left once the server closes idle connections', async () => {
    const MANY = 500 // More than the buffers on the way have room for.
    let isRead = false
    const stream = async function* () {
      for (let i = 0; i < MANY; i++) yield chunk(1, 2 ** 16)
      isRead = true
    }
    const serving = await serve(framework, () => ({ stream: stream(), headers: OCTETS }), { options })
    let connection: Socket | undefined
    serving.server.once('connection', (socket) => {
      connection = socket
    })
    const client = serving.open()
    await client.firstByte
    client.socket.pause()
    // As `server.setTimeout` does to each connection. Here not before the answer has begun, however busy the machine is.
    connection?.setTimeout(100)
    await serving.once.idle()
    expect(isRead).toBe(true)
    expect((await serving.send()).json()).toMatchObject({ code: 'answer_not_kept' })
    client.socket.resume()
    await client.closed
    await expect(client.reply()).rejects.toThrow('The connection closed')
    expect(serving.events.map(({ type }) => type)).toEqual(['claimed', 'completed', 'answer_not_kept'])
  })

  test('a client that leaves a stream breaks nothing: it is read to its end', async () => {
    const end = gate()
    let isRead = false
    const stream = async function* () {
      yield chunk(1)
      yield chunk(2)
      await end.opened
      yield chunk(3)
      isRead = true
    }
    const serving = await serve(framework, () => ({ stream: stream(), headers: OCTETS }), { options })
    const client = serving.open()
    await client.firstByte
    client.socket.destroy()
    await client.closed
    expect((await serving.send()).json()).toMatchObject({ code: 'in_flight' })
    end.open()
    await serving.once.idle()
    expect(isRead).toBe(true)
    expect((await serving.send()).json()).toMatchObject({ code: 'answer_not_kept' })
  })

  test('an event stream whose client leaves is told so, and has ended', async () => {
    const told = gate()
    const stream = async function* () {
      try {
        for (let i = 1; ; i++) {
          yield Buffer.from(`data: ${i}\n\n`)
          await new Promise((resolve) => setTimeout(resolve, 1))
        }
      } finally {
        told.open()
      }
    }
    const serving = await serve(framework, () => ({ stream: stream(), headers: EVENTS }))
    const client = serving.open()
    await client.firstByte
    client.socket.destroy()
    await told.opened
  })

  test('a source that breaks cuts the connection, and leaves the outcome unknown', async () => {
    const seen: unknown[] = []
    const breaking = gate()
    const broken = async function* () {
      yield chunk(1)
      yield chunk(2)
      await breaking.opened
      throw new Error('The source broke')
    }
    const serving = await serve(
      framework,
      ({ idempotency }) => {
        seen.push(idempotency?.previousOutcome)
        return seen.length === 1 ? { stream: broken(), headers: OCTETS } : { text: 'paid' }
      },
      { options },
    )
    const client = serving.open()
    await client.firstByte
    breaking.open()
    await client.closed
    await expect(client.reply()).rejects.toThrow('The connection closed')
    await serving.once.idle()
    expect((await serving.send()).body.toString()).toBe('paid')
    expect(seen).toEqual(['none', 'unknown'])
  })

  test('a source that breaks before anything has left is a failure, too', async () => {
    const broken = async function* () {
      yield chunk(1, 1)
      throw new Error('The source broke')
    }
    let runs = 0
    const handler = () => (++runs === 1 ? { stream: broken(), headers: OCTETS } : { text: 'paid' })
    const serving = await serve(framework, handler)
    const client = serving.open()
    await client.reply().then(
      ({ status }) => expect(status).toBe(500),
      () => {},
    )
    await serving.once.idle()
    expect((await serving.send()).body.toString()).toBe('paid')
    expect(serving.events.map(({ type }) => type)).toEqual(['claimed', 'failed', 'claimed', 'completed'])
  })

  test('a source that breaks before anything has left is no refusal, whatever the error handler answers', async () => {
    const broken = async function* () {
      yield chunk(1, 1)
      throw new Error('The source broke')
    }
    const serving = await serve(framework, () => ({ stream: broken(), headers: OCTETS }), {
      onError: () => ({ status: 404, text: 'The file is missing' }),
    })
    await serving
      .open()
      .reply()
      .catch(() => 'cut')
    await serving.once.idle()
    expect(serving.events).toMatchObject([{ type: 'claimed' }, { type: 'failed', uncertain: true }])
  })

  test("with effects: 'declared', such a failure is as certain as any other", async () => {
    const broken = async function* () {
      yield chunk(1, 1)
      throw new Error('The source broke')
    }
    const serving = await serve(framework, () => ({ stream: broken(), headers: OCTETS }), {
      onError: () => ({ status: 404, text: 'The file is missing' }),
      options: { effects: 'declared' },
    })
    await serving
      .open()
      .reply()
      .catch(() => 'cut')
    await serving.once.idle()
    expect(serving.events).toMatchObject([{ type: 'claimed' }, { type: 'failed', uncertain: false }])
  })

  test('the end of a stream whose record is not confirmed never leaves', async () => {
    const store = failingStore()
    const leaving = gate()
    const stream = async function* () {
      yield chunk(1)
      yield chunk(2)
      await leaving.opened
      store.always('complete', () => Promise.reject(new Error('The store is away')))
      yield chunk(3)
    }
    const serving = await serve(framework, () => ({ stream: stream(), headers: OCTETS }), {
      options: { ...options, store, storeTimeoutMs: 50, leaseMs: 200, maxRunMs: 1_000 },
    })
    const client = serving.open()
    await client.firstByte
    leaving.open()
    await client.closed
    await expect(client.reply()).rejects.toThrow('The connection closed')
  })
})

/** Of a Fetch response, the connection is the server's own. */
describe.each([...ON_NODE, onKoa, ...ON_FASTIFY])('$name', (framework) => {
  // Where the end of the connection is the end of the answer, no client could tell otherwise.
  test('an event stream over HTTP/1.0 that breaks off is reset, and one that ends is not', async () => {
    const breaking = gate()
    const broken = async function* () {
      yield Buffer.from('data: 1\n\n')
      await breaking.opened
      throw new Error('The source broke')
    }
    const whole = async function* () {
      yield Buffer.from('data: 1\n\n')
    }
    let runs = 0
    const handler = () => ({ stream: ++runs === 1 ? broken() : whole(), headers: EVENTS })
    const serving = await serve(framework, handler)
    const client = serving.open({ version: '1.0' })
    await client.firstByte
    breaking.open()
    await client.closed
    expect(client.wasReset()).toBe(true)
    await serving.once.idle()
    expect((await serving.send({ version: '1.0' })).body.toString()).toBe('data: 1\n\n')
  })
})
