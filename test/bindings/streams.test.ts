import { Buffer } from 'node:buffer'
import { once as onceEmitted } from 'node:events'
import http, { type ServerResponse } from 'node:http'
import net from 'node:net'
import { PassThrough, Readable } from 'node:stream'
import { pipeline } from 'node:stream/promises'
import zlib from 'node:zlib'
import { MemoryStore } from 'once-per-key/memory'
import { describe, expect, test } from 'vitest'
import { BARE, BINDINGS, BINDINGS_AND_STACKS, FULL, type Next, type Step } from '../support/bindings.js'
import { gate } from '../support/gate.js'
import { bytesOf, connectTo, decoded, type RawReply, request } from '../support/raw-client.js'
import { serve } from '../support/serve.js'
import { NOISE } from './answer-styles.js'

const LIMIT = 1_000
const LARGE = NOISE.subarray(0, 5_000)

interface Streaming {
  readonly name: string
  readonly handler: Step
  readonly body: Buffer
}

const EVENTS = ['data: 1\n\n', 'data: 2\n\n']

/** All of these complete their record without an answer, before their end leaves. */
const STREAMINGS: readonly Streaming[] = [
  { name: 'an end with too much', handler: (_req, res) => res.end(LARGE), body: LARGE },
  {
    name: 'writes that become too much',
    handler(_req, res) {
      for (let i = 0; i < LARGE.length; i += 500) res.write(LARGE.subarray(i, i + 500))
      res.end()
    },
    body: LARGE,
  },
  {
    name: 'a write of too much, and a late end',
    handler(_req, res) {
      res.write(LARGE, () => setImmediate(() => res.end('!')))
    },
    body: Buffer.concat([LARGE, Buffer.from('!')]),
  },
  {
    name: 'a pipe of too much',
    handler: (_req, res) => Readable.from([LARGE, LARGE]).pipe(res),
    body: Buffer.concat([LARGE, LARGE]),
  },
  {
    name: 'a pipeline of too much',
    handler: (_req, res) => pipeline(Readable.from([LARGE, LARGE]), res),
    body: Buffer.concat([LARGE, LARGE]),
  },
  {
    name: 'too much with a Content-Length',
    handler(_req, res) {
      res.setHeader('Content-Length', LARGE.length)
      res.write(LARGE)
      res.end()
    },
    body: LARGE,
  },
  {
    name: 'an event stream',
    handler(_req, res) {
      res.setHeader('Content-Type', 'text/event-stream')
      res.write(EVENTS[0])
      setImmediate(() => res.end(EVENTS[1]))
    },
    body: Buffer.from(EVENTS.join('')),
  },
  {
    name: 'an event stream through writeHead and pipe',
    handler(_req, res) {
      res.writeHead(200, { 'Content-Type': 'Text/Event-Stream; charset=utf-8' })
      Readable.from(EVENTS).pipe(res)
    },
    body: Buffer.from(EVENTS.join('')),
  },
  {
    name: 'an event stream that ends at once',
    handler(_req, res) {
      res.setHeader('Content-Type', 'text/event-stream')
      res.end(EVENTS[0])
    },
    body: Buffer.from(EVENTS[0] as string),
  },
  {
    name: 'flushHeaders, then an end',
    handler(_req, res) {
      res.flushHeaders()
      res.end('paid')
    },
    body: Buffer.from('paid'),
  },
  {
    name: 'flushHeaders, then a pipe',
    handler(_req, res) {
      res.flushHeaders()
      Readable.from(['a', 'b']).pipe(res)
    },
    body: Buffer.from('ab'),
  },
  {
    name: 'flushHeaders, then a pipeline',
    handler(_req, res) {
      res.flushHeaders()
      return pipeline(Readable.from(['a', 'b']), res)
    },
    body: Buffer.from('ab'),
  },
  {
    name: 'flushHeaders, then writes that wait for drain',
    handler(_req, res) {
      res.flushHeaders()
      let left = 3
      const go = (): void => {
        while (left-- > 0) if (!res.write('a')) return void res.once('drain', go)
        res.end('b')
      }
      go()
    },
    body: Buffer.from('aaab'),
  },
]

describe.each(BINDINGS_AND_STACKS)('$name', ({ binding, stack }) => {
  test.each(STREAMINGS)('$name is sent, and its record completes without it', async ({ handler, body }) => {
    const serving = await serve(binding, handler, { stack, options: { maxAnswerBytes: LIMIT } })
    const reply = await request(serving.port, { key: 'k', headers: { 'Accept-Encoding': 'gzip' } })
    expect(reply.status).toBe(200)
    expect(decoded(reply).equals(body)).toBe(true)
    const refusal = await request(serving.port, { key: 'k' })
    expect(refusal.status).toBe(409)
    expect(refusal.json()).toMatchObject({ code: 'answer_not_kept' })
    expect(refusal.header('X-Should-Retry')).toBe('false')
    expect(serving.events).toContainEqual(expect.objectContaining({ type: 'completed', answerKept: false }))
    expect(serving.runs()).toBe(1)
  })

  test('an answer of exactly maxAnswerBytes is kept', async () => {
    const serving = await serve(
      binding,
      (_req, res) => {
        res.write(LARGE.subarray(0, LIMIT - 1))
        res.write(LARGE.subarray(LIMIT - 1, LIMIT))
        res.end()
      },
      { stack, options: { maxAnswerBytes: LIMIT } },
    )
    await request(serving.port, { key: 'k' })
    expect((await request(serving.port, { key: 'k' })).body.equals(LARGE.subarray(0, LIMIT))).toBe(true)
  })

  test('a body that is not sent is not too large', async () => {
    const serving = await serve(binding, (_req, res) => res.end(LARGE), { stack, options: { maxAnswerBytes: LIMIT } })
    await request(serving.port, { method: 'HEAD', key: 'k' })
    expect((await request(serving.port, { method: 'HEAD', key: 'k' })).header('Idempotent-Replayed')).toBe('true')
  })

  test('the first event leaves while the stream is open, and the next when it is written', async () => {
    const next = gate()
    const serving = await serve(
      binding,
      async (_req, res) => {
        res.writeHead(200, { 'Content-Type': 'text/event-stream' })
        const source = new PassThrough()
        source.pipe(res)
        source.write(EVENTS[0])
        setImmediate(() => res.flush?.()) // compression's: without it, an event waits for the next one.
        await next.opened
        source.end(EVENTS[1])
      },
      { stack, options: { store: unhurried() } },
    )
    const events = await eventsFrom(serving.port)
    expect((await events.next()).value).toBe(EVENTS[0])
    expect(serving.events.map(({ type }) => type)).toEqual(['claimed'])
    expect((await request(serving.port, { key: 'k' })).json()).toMatchObject({ code: 'in_flight' })
    next.open()
    expect((await events.next()).value).toBe(EVENTS[1])
    expect((await events.next()).done).toBe(true)
    expect(serving.events.map(({ type }) => type)).toEqual(['claimed', 'in_flight', 'completed'])
  })

  test.each([
    { name: 'at once', fail: (_res, next) => next(new Error('the source broke')) },
    { name: 'later', fail: (_res, next) => void setImmediate(() => next(new Error('the source broke'))) },
    { name: 'by destroy()', fail: (res) => void res.destroy() },
    { name: 'by destroy() later', fail: (res) => void setImmediate(() => res.destroy()) },
  ] satisfies { name: string; fail: (res: ServerResponse, next: Next) => void }[])(
    'a handler that fails after its stream has begun cuts it, and its outcome is unknown: $name',
    async ({ fail }) => {
      const serving = await serve(
        binding,
        (req, res, next) => {
          const { previousOutcome } = req.idempotency
          if (previousOutcome !== 'none') return res.end(previousOutcome)
          res.flushHeaders()
          res.write('half')
          fail(res, next)
        },
        { stack },
      )
      const client = connectTo(serving.port)
      client.send({ key: 'k' })
      await client.closed
      expect(client.received().toString('latin1')).not.toContain('0\r\n\r\n')
      expect((await request(serving.port, { key: 'k' })).body.toString()).toBe('unknown')
    },
  )

  test('a client that leaves in the middle of an event stream ends it as without the middleware', async () => {
    const failed = gate<string>()
    const closed = gate()
    const handler: Step = async (req, res, next) => {
      const { previousOutcome } = req.idempotency
      if (previousOutcome !== 'none') return res.end(previousOutcome)
      res.setHeader('Content-Type', 'text/event-stream')
      res.flushHeaders()
      res.once('close', () => closed.open())
      const endless = new Readable({ read() { this.push(NOISE) } }) // biome-ignore format: one idea
      await pipeline(endless, res).catch((error) => {
        failed.open(error.code)
        next(error)
      })
    }
    const serving = await serve(binding, handler, { stack })
    const client = connectTo(serving.port)
    client.send({ key: 'k' })
    await client.firstByte
    client.socket.destroy()
    expect(await failed.opened).toBe('ERR_STREAM_PREMATURE_CLOSE')
    await closed.opened
    await serving.seen('failed')
    expect((await request(serving.port, { key: 'k' })).body.toString()).toBe('unknown')
  })

  test('a client that leaves in the middle of any other stream does not stop it, and its end counts', async () => {
    const left = gate()
    const ended = gate<'resolved' | 'rejected'>()
    const order: string[] = []
    const handler: Step = async (req, res) => {
      req.socket.once('close', () => left.open())
      for (const event of ['finish', 'close']) res.once(event, () => order.push(event))
      const source = new PassThrough()
      const piped = pipeline(source, res)
      source.write(LARGE)
      await left.opened
      for (let i = 0; i < 50; i++) source.write(NOISE)
      source.end()
      order.push('end')
      ended.open(await piped.then(
        () => 'resolved',
        () => 'rejected',
      )) // biome-ignore format: one idea
    }
    const serving = await serve(binding, handler, { stack, options: { maxAnswerBytes: LIMIT } })
    const client = connectTo(serving.port)
    client.send({ key: 'k' })
    await client.firstByte
    client.socket.destroy()
    expect(await ended.opened).toBe('resolved')
    await serving.once.idle()
    expect(order).toEqual(['end', 'finish', 'close'])
    expect((await request(serving.port, { key: 'k' })).json()).toMatchObject({ code: 'answer_not_kept' })
    expect(serving.events.map(({ type }) => type)).toEqual(['claimed', 'completed', 'answer_not_kept'])
  })
})

describe.each(BINDINGS)('$name', (binding) => {
  test.each([BARE, FULL])('a slow reader of 50 MB holds its source back, $name', async (stack) => {
    const total = 50_000_000
    let produced = 0
    const source = () =>
      new Readable({
        read() {
          const left = total - produced
          if (left <= 0) return void this.push(null)
          const chunk = NOISE.subarray(0, Math.min(NOISE.length, left))
          produced += chunk.length
          this.push(chunk)
        },
      })
    const serving = await serve(binding, (_req, res) => source().pipe(res), { stack })
    const reader = net.connect(serving.port, '127.0.0.1')
    reader.pause()
    reader.write(bytesOf({ key: 'k' }))
    await untilStill(() => produced)
    // 1 MiB is held; the rest is in the buffers of the source and of two sockets.
    expect(produced).toBeLessThan(16_000_000)

    const end = gate()
    let tail = ''
    reader.on('data', (chunk) => {
      tail = (tail + chunk.toString('latin1', Math.max(0, chunk.length - 5))).slice(-5)
      if (produced === total && tail === '0\r\n\r\n') end.open()
    })
    reader.resume()
    await end.opened
    expect(reader.bytesRead).toBeGreaterThan(total)
    reader.destroy()
  })

  test('write callbacks are called and backpressure ends with drain, as without the middleware', async () => {
    const huge = Buffer.alloc(500_000, 'paid ') // More than a socket takes without asking to wait.
    const orderOf = async (isProtected: boolean): Promise<string[]> => {
      const order: string[] = []
      const done = gate()
      const handler: Step = (_req, res) => {
        const flows = res.write(huge, () => order.push('first'))
        order.push(`flows: ${flows}`)
        const flowsOn = res.write('x', () => order.push('second'))
        order.push(`flows on: ${flowsOn}`)
        res.once('drain', () => {
          order.push('drain')
          res.end('y', () => {
            order.push('end')
            done.open()
          })
        })
      }
      const serving = await serve(binding, handler, { isProtected, options: { maxAnswerBytes: LIMIT } })
      const reply = await request(serving.port, { key: 'k' })
      await done.opened
      expect(reply.body.length).toBe(huge.length + 2)
      return order
    }
    const order = await orderOf(true)
    expect(order.slice().sort()).toEqual(['drain', 'end', 'first', 'flows on: false', 'flows: false', 'second'])
    expect(order).toEqual(await orderOf(false))
  })

  test('trailers reach the first client, and are not replayed', async () => {
    const serving = await serve(binding, (_req, res) => {
      res.setHeader('Trailer', 'X-Sum')
      res.write('paid')
      res.addTrailers({ 'X-Sum': '17' })
      res.end()
    })
    const first: RawReply = await request(serving.port, { key: 'k' })
    expect(first.body.toString()).toBe('paid')
    expect(first.trailers).toEqual([['X-Sum', '17']])
    const replay = await request(serving.port, { key: 'k' })
    expect(replay.body.toString()).toBe('paid')
    expect(replay.lines('Trailer')).toEqual([])
  })
})

/** Waits until a number that grew has not changed for many turns of the loop. */
async function untilStill(count: () => number): Promise<void> {
  for (let before = -1, still = 0; still < 100; ) {
    const now = count()
    still = now === before && now > 0 ? still + 1 : 0
    before = now
    await new Promise((resolve) => setImmediate(resolve))
  }
}

/** A store that answers some turns of the loop later, as one across a network does. */
function unhurried(): MemoryStore {
  const store = new MemoryStore()
  const complete = store.complete.bind(store)
  store.complete = async (...args) => {
    for (let i = 0; i < 5; i++) await new Promise((resolve) => setImmediate(resolve))
    return complete(...args)
  }
  return store
}

/** The events as a client decodes them, each when it comes. */
async function eventsFrom(port: number): Promise<AsyncIterator<string>> {
  const headers = { 'Idempotency-Key': 'k', 'Accept-Encoding': 'gzip' }
  const [res] = await onceEmitted(http.request({ port, method: 'POST', headers }).end(), 'response')
  const decoding = res.headers['content-encoding'] === 'gzip' ? zlib.createGunzip() : new PassThrough()
  return res.pipe(decoding.setEncoding('utf8'))[Symbol.asyncIterator]()
}
