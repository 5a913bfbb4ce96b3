import { Buffer } from 'node:buffer'
import net from 'node:net'
import { PassThrough, Readable } from 'node:stream'
import { pipeline } from 'node:stream/promises'
import { MemoryStore } from 'once-per-key/memory'
import { describe, expect, test } from 'vitest'
import { NOISE } from '../bindings/answer-styles.js'
import { BINDINGS, type ErrorStep, type Step } from '../support/bindings.js'
import { failingStore } from '../support/failing-store.js'
import { gate } from '../support/gate.js'
import { bytesOf, type Connection, connectTo, request } from '../support/raw-client.js'
import { serve } from '../support/serve.js'
import { takenOver } from '../support/taken-over.js'

// A head that had left counted as success: a stream that broke off after it stood as completed in its record, and its
// retry heard for a day that the operation had succeeded. Now a stream stays in flight until it ends, and its end leaves
// once its record is completed.

const LIMIT = 1_000
const LARGE = NOISE.subarray(0, 5_000)
const LAST_CHUNK = '\r\n0\r\n\r\n'

/** Runs `first` once; later runs say what they are told of it. */
function onceOnly(first: Step): Step {
  return (req, res, next) => {
    const { previousOutcome } = req.idempotency
    return previousOutcome === 'none' ? first(req, res, next) : res.end(previousOutcome)
  }
}

const BEGINNINGS: readonly { readonly name: string; readonly begin: Step }[] = [
  { name: 'flushHeaders()', begin: (_req, res) => res.flushHeaders() },
  {
    name: 'an event stream',
    begin(_req, res) {
      res.setHeader('Content-Type', 'text/event-stream')
      res.write('data: 1\n\n')
    },
  },
  { name: 'too large a body', begin: (_req, res) => res.write(LARGE) },
]

describe.each(BINDINGS)('$name', (binding) => {
  describe.each(BEGINNINGS)('after $name', ({ begin }) => {
    test('a throw leaves the outcome unknown', async () => {
      const handler = onceOnly((req, res, next) => {
        begin(req, res, next)
        throw new Error('the database is gone')
      })
      const { port, events } = await serve(binding, handler, { options: { maxAnswerBytes: LIMIT } })
      const client = connectTo(port)
      client.send({ key: 'k' })
      await client.closed
      expect(client.received().toString('latin1')).not.toContain(LAST_CHUNK)
      expect((await request(port, { key: 'k' })).body.toString()).toBe('unknown')
      expect(events[1]).toMatchObject({ type: 'failed', uncertain: true, because: 'no_answer' })
    })

    test('a source that fails in a pipeline leaves the outcome unknown', async () => {
      const handler = onceOnly(async (req, res, next) => {
        begin(req, res, next)
        const source = new PassThrough()
        source.write('half')
        setImmediate(() => source.destroy(new Error('the source broke')))
        await pipeline(source, res).catch(() => {})
      })
      const { port } = await serve(binding, handler, { options: { maxAnswerBytes: LIMIT } })
      const client = connectTo(port)
      client.send({ key: 'k' })
      await client.closed
      expect((await request(port, { key: 'k' })).body.toString()).toBe('unknown')
    })

    test('a hang-up by the request’s socket leaves the outcome unknown', async () => {
      const handler = onceOnly((req, res, next) => {
        begin(req, res, next)
        req.socket.destroy()
      })
      const { port, once } = await serve(binding, handler, { options: { maxAnswerBytes: LIMIT } })
      const client = connectTo(port)
      client.send({ key: 'k' })
      await client.closed
      await once.idle()
      expect((await request(port, { key: 'k' })).body.toString()).toBe('unknown')
    })

    test('an error handler that ends it with another status leaves the outcome unknown', async () => {
      const handler = onceOnly((req, res, next) => {
        begin(req, res, next)
        throw new Error('the database is gone')
      })
      const onError: ErrorStep = (_err, _req, res, _next) => {
        res.statusCode = 500
        res.end('sorry')
      }
      const { port } = await serve(binding, handler, { onError, options: { maxAnswerBytes: LIMIT } })
      const client = connectTo(port)
      client.send({ key: 'k' })
      await client.closed
      expect(client.received().toString('latin1')).not.toContain(LAST_CHUNK)
      expect((await request(port, { key: 'k' })).body.toString()).toBe('unknown')
    })

    test('the run stays in flight until its end, and the end waits for the record', async () => {
      const asked = gate()
      const confirm = gate()
      const store = failingStore()
      store.next('complete', async (take) => {
        asked.open()
        await confirm.opened
        return take()
      })
      const writtenAll = gate()
      const goOn = gate()
      const handler: Step = async (req, res, next) => {
        begin(req, res, next)
        res.write('and more')
        writtenAll.open()
        await goOn.opened
        res.end('the end')
      }
      const { port, events } = await serve(binding, handler, { options: { store, maxAnswerBytes: LIMIT } })
      const client = connectTo(port)
      client.send({ key: 'k' })
      await client.firstByte
      await writtenAll.opened
      expect((await request(port, { key: 'k' })).json()).toMatchObject({ code: 'in_flight' })
      goOn.open()
      await asked.opened
      expect(client.received().toString('latin1')).not.toContain('the end')
      expect((await request(port, { key: 'k' })).json()).toMatchObject({ code: 'in_flight' })
      confirm.open()
      expect((await client.reply()).body.toString('latin1')).toMatch(/and morethe end$/)
      expect(events.map(({ type }) => type)).toEqual(['claimed', 'in_flight', 'in_flight', 'completed'])
      expect((await request(port, { key: 'k' })).json()).toMatchObject({ code: 'answer_not_kept' })
    })

    test.each([
      { name: 'is not confirmed', storeOf: () => unconfirming() },
      { name: 'is another’s', storeOf: () => takenOver({ completed: true }) },
    ])('where the record $name, the connection is destroyed before the end', async ({ storeOf }) => {
      const handler: Step = (req, res, next) => {
        begin(req, res, next)
        setImmediate(() => res.end('the end'))
      }
      const options = { store: storeOf(), storeTimeoutMs: 50, leaseMs: 1_000, maxAnswerBytes: LIMIT }
      const { port } = await serve(binding, handler, { options })
      const client = connectTo(port)
      client.send({ key: 'k' })
      await client.closed
      const received = client.received().toString('latin1')
      expect(received).toMatch(/^HTTP\/1\.1 200 OK\r\n/)
      expect(received).not.toContain('the end')
      expect(received).not.toContain(LAST_CHUNK)
    })

    test('the last byte of an announced length waits for the record', async () => {
      const asked = gate()
      const confirm = gate()
      const store = failingStore()
      store.next('complete', async (take) => {
        asked.open()
        await confirm.opened
        return take()
      })
      const text = `data: ${'1'.repeat(6_000)}`
      const handler: Step = (req, res, next) => {
        res.setHeader('Content-Length', text.length)
        res.flushHeaders()
        Readable.from([text.slice(0, 3_000), text.slice(3_000)]).pipe(res)
        req.on('error', next)
      }
      const { port } = await serve(binding, handler, { options: { store, maxAnswerBytes: LIMIT } })
      const client = connectTo(port)
      client.send({ key: 'k' })
      await asked.opened
      while (!client.received().includes(text.slice(0, -1))) {
        await new Promise((resolve) => client.socket.once('data', resolve))
      }
      await new Promise((resolve) => setImmediate(resolve))
      expect(
        client
          .received()
          .toString()
          .endsWith(`\r\n\r\n${text.slice(0, -1)}`),
      ).toBe(true)
      confirm.open()
      expect((await client.reply()).body.toString()).toBe(text)
    })
  })

  test('a stream that runs unprotected has no record to wait for, and ends', async () => {
    const store = failingStore()
    for (const command of ['begin', 'complete'] as const) store.always(command, () => Promise.reject(new Error('down')))
    const options = { store, storeFailure: 'runUnprotected', storeTimeoutMs: 50, leaseMs: 200, maxRunMs: 200 } as const
    const handler: Step = (_req, res) => {
      res.flushHeaders()
      setImmediate(() => res.end('paid'))
    }
    const { port } = await serve(binding, handler, { options })
    expect((await request(port, { key: 'k' })).body.toString()).toBe('paid')
  })

  test('a stream that refuses, or fails, ends as its head says', async () => {
    const handler: Step = (req, res) => {
      const { previousOutcome } = req.idempotency
      if (previousOutcome !== 'none') return res.end(previousOutcome)
      res.statusCode = req.url === '/refuses' ? 422 : 503
      res.flushHeaders()
      setImmediate(() => res.end('no'))
    }
    const { port } = await serve(binding, handler)
    for (const [path, said] of [
      ['/refuses', 'failed'],
      ['/fails', 'unknown'],
    ] as const) {
      expect((await request(port, { path, key: path })).body.toString()).toBe('no')
      expect((await request(port, { path, key: path })).body.toString()).toBe(said)
    }
  })

  test('a stream without a body has no end to wait for: it is kept like any answer', async () => {
    const handler: Step = (req, res) => {
      if (req.method === 'POST') res.statusCode = 204
      res.setHeader('Content-Type', 'text/event-stream')
      res.flushHeaders()
      setImmediate(() => res.end())
    }
    const asked = gate()
    const store = failingStore()
    store.always('complete', (take) => {
      asked.open()
      return take()
    })
    const { port } = await serve(binding, handler, { options: { store } })
    const client = connectTo(port)
    client.send({ key: 'k' })
    await Promise.race([client.firstByte, asked.opened])
    expect(client.received()).toHaveLength(0)
    expect((await client.reply()).status).toBe(204)
    client.send({ method: 'HEAD', key: 'h' })
    expect((await client.reply('HEAD')).status).toBe(200)
  })

  test('where only the connection’s end ends a stream, one that breaks off is reset', async () => {
    const arrived = gate() // A Node client that reads data and a reset at once takes that for an end.
    const handler: Step = async (_req, res) => {
      res.flushHeaders()
      res.write('half')
      await arrived.opened
      res.destroy()
    }
    const { port } = await serve(binding, handler)
    const socket = net.connect(port, '127.0.0.1')
    socket.write(bytesOf({ key: 'k', version: '1.0' }))
    socket.once('data', () => setImmediate(() => arrived.open()))
    const ended = await new Promise((resolve) => {
      socket.once('error', (error: NodeJS.ErrnoException) => resolve(error.code))
      socket.once('end', () => resolve('as if it were whole'))
    })
    expect(ended).toBe('ECONNRESET')
  })

  test('a client that reads slowly and leaves does not hold its handler up', async () => {
    const left = gate()
    const handler: Step = (req, res) => {
      req.socket.once('close', () => left.open())
      let remaining = 300
      const go = (): void => {
        while (remaining-- > 0) if (!res.write(NOISE)) return void res.once('drain', go)
        res.end()
      }
      go()
    }
    const { port, seen } = await serve(binding, handler, { options: { maxAnswerBytes: LIMIT } })
    const client = connectTo(port)
    client.socket.pause()
    client.send({ key: 'k' })
    await new Promise((resolve) => client.socket.once('readable', resolve))
    client.socket.destroy()
    await left.opened
    await seen('completed')
  })

  /** A client that leaves at a certain time: the run completes all the same. */
  async function leave(handler: Step, when: (client: Connection) => Promise<unknown>): Promise<void> {
    const { port, seen } = await serve(binding, handler)
    const client = connectTo(port)
    client.send({ key: 'k' })
    await when(client)
    client.socket.destroy()
    await seen('completed')
  }

  test('write callbacks of a stream whose client has left are called, without an error', async () => {
    const left = gate()
    const called: unknown[] = []
    const handler: Step = async (req, res) => {
      req.socket.once('close', () => left.open())
      res.flushHeaders()
      res.write(Buffer.alloc(20_000_000), (error?: Error) => called.push(error ?? 'called'))
      await left.opened
      res.write('more', (error?: Error) => {
        called.push(error ?? 'called')
        res.end()
      })
    }
    await leave(handler, (client) => client.firstByte)
    expect(called).toEqual(['called', 'called'])
  })

  test('an event stream whose client left before it began hears of it', async () => {
    const left = gate()
    const started = gate()
    const handler: Step = async (req, res) => {
      req.socket.once('close', () => left.open())
      started.open()
      await left.opened
      res.writeHead(200, { 'Content-Type': 'text/event-stream' })
      res.once('close', () => res.end())
      res.write('data: 1\n\n')
    }
    await leave(handler, () => started.opened)
  })

  test('an event stream that has not written yet hears its client leave', async () => {
    const started = gate()
    const handler: Step = (_req, res) => {
      res.writeHead(200, { 'Content-Type': 'text/event-stream' })
      res.once('close', () => res.end())
      started.open()
    }
    await leave(handler, () => started.opened)
  })

  test('a stream that waits behind another response goes on when its connection closes', async () => {
    const begun = gate()
    const handler: Step = (req, res) => {
      if (req.url === '/first') return
      let remaining = 30
      const go = (): void => {
        while (remaining-- > 0) if (!res.write(NOISE)) return void res.once('drain', go)
        res.end()
      }
      go()
      begun.open()
    }
    const { port, seen, once } = await serve(binding, handler, { options: { maxAnswerBytes: LIMIT, required: false } })
    const client = connectTo(port)
    client.send({ path: '/first' })
    client.send({ path: '/second', key: 'k' })
    await begun.opened
    client.socket.destroy()
    await seen('completed')
    await once.idle()
  })

  test('a hook on the head that throws is thrown at the handler, and an error page follows', async () => {
    const before: Step = (_req, res, next) => {
      const { writeHead } = res
      res.writeHead = function (status: number, ...rest: unknown[]) {
        if (status === 201) throw new Error('a broken hook')
        return writeHead.call(this, status, ...rest)
      }
      next()
    }
    const handler: Step = (_req, res) => {
      res.statusCode = 201
      res.flushHeaders()
      res.end('paid')
    }
    const onError: ErrorStep = (err, _req, res, _next) => {
      res.statusCode = 500
      res.end(`Sorry: ${err.message}`)
    }
    const { port, events } = await serve(binding, handler, { before: [before], onError })
    const reply = await request(port, { key: 'k' })
    expect([reply.status, reply.body.toString()]).toEqual([500, 'Sorry: a broken hook'])
    expect(events).toContainEqual(expect.objectContaining({ type: 'failed', uncertain: true }))
  })
})

/** A store that takes a completion, and never says so. */
function unconfirming() {
  const store = failingStore(new MemoryStore())
  store.always('complete', (take) => take().then(() => new Promise(() => {})))
  return store
}
