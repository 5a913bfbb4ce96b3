import type { ServerResponse } from 'node:http'
import type { Socket } from 'node:net'
import compression from 'compression'
import { describe, expect, test } from 'vitest'
import { BINDINGS, type ErrorStep, type Step } from '../support/bindings.js'
import { failingStore } from '../support/failing-store.js'
import { gate } from '../support/gate.js'
import { connectTo, decoded, request } from '../support/raw-client.js'
import { serve } from '../support/serve.js'

// What is different for a handler while its response is held, and cannot be otherwise: the documentation's list, sentence by
// sentence. Whatever is not in it must be as without the middleware.

/** Runs `work` when the head of a response leaves, as on-headers does. */
function onHead(work: (res: ServerResponse) => void): Step {
  return (_req, res, next) => {
    const { writeHead } = res
    res.writeHead = function (this: ServerResponse, ...args: unknown[]) {
      work(this)
      return writeHead.apply(this, args)
    }
    next()
  }
}

describe.each(BINDINGS)('$name', (binding) => {
  describe('hooks on the head', () => {
    test('that are mounted before it run when the answer leaves, behind the handler and the store', async () => {
      const order: string[] = []
      const store = failingStore()
      store.always('complete', async (take) => {
        const reply = await take()
        order.push('stored')
        return reply
      })
      const hook = onHead((res) => {
        order.push('hook')
        res.setHeader('X-Hook', 'ran')
      })
      const handler: Step = (_req, res) => {
        res.write('paid')
        order.push(`after a write, X-Hook is ${res.getHeader('X-Hook')}`)
        res.end()
        order.push('ended')
      }
      const { port } = await serve(binding, handler, { before: [hook], options: { store } })
      const first = await request(port, { key: 'k' })
      expect(first.header('X-Hook')).toBe('ran')
      expect(order).toEqual(['after a write, X-Hook is undefined', 'ended', 'stored', 'hook'])
    })

    test('that are mounted before it run again for a replay; behind it, once, and what they set is kept', async () => {
      const counts = { before: 0, behind: 0 }
      const before = onHead((res) => res.setHeader('X-Before', ++counts.before))
      const behind = onHead((res) => res.setHeader('X-Behind', ++counts.behind))
      const { port } = await serve(binding, (_req, res) => res.end('paid'), { before: [before], behind: [behind] })
      for (const expected of ['1', '2']) {
        const reply = await request(port, { key: 'k' })
        expect([reply.header('X-Before'), reply.header('X-Behind')]).toEqual([expected, '1'])
      }
    })

    test('that throw, mounted before it, reach the error handlers, where the record stands', async () => {
      const thrown: unknown[] = []
      const hook = onHead((res) => {
        if (res.statusCode === 201) throw new Error('a broken hook')
      })
      const handler: Step = (_req, res) => {
        res.statusCode = 201
        try {
          res.end('paid')
        } catch (error) {
          thrown.push(error)
        }
      }
      const onError: ErrorStep = (err, _req, res, _next) => {
        res.statusCode = 500
        res.end(`Sorry: ${err.message}`)
      }
      const serving = await serve(binding, handler, { before: [hook], onError })
      expect((await request(serving.port, { key: 'k' })).body.toString()).toBe('Sorry: a broken hook')
      expect(thrown).toEqual([])
      expect(serving.events.map(({ type }) => type)).toEqual(['claimed', 'completed'])
    })
  })

  test('nothing leaves before the handler’s end: write() accepts and calls back at once, and flush() has no effect', async () => {
    const written = gate()
    const goOn = gate()
    const accepted: unknown[] = []
    const handler: Step = async (_req, res) => {
      for (let i = 0; i < 10; i++) {
        const calledBack = new Promise((resolve) => {
          accepted.push(res.write('paid '.repeat(10_000), resolve))
        })
        await calledBack
        res.flush()
      }
      accepted.push(res.writableNeedDrain)
      written.open()
      await goOn.opened
      res.end()
    }
    const before = compression({ threshold: 0, filter: () => true }) as unknown as Step
    const { port } = await serve(binding, handler, { before: [before] })
    const client = connectTo(port)
    client.send({ key: 'k', headers: { 'Accept-Encoding': 'gzip' } })
    await written.opened
    await new Promise((resolve) => setImmediate(resolve))
    expect(client.received()).toHaveLength(0)
    expect(accepted).toEqual([...Array(10).fill(true), false])
    goOn.open()
    expect(decoded(await client.reply()).byteLength).toBe(500_000)
  })

  test('headersSent is true after the first write, although nothing has left', async () => {
    const written = gate()
    const goOn = gate()
    const seen: unknown[] = []
    const handler: Step = async (_req, res) => {
      res.write('paid')
      seen.push(res.headersSent)
      written.open()
      await goOn.opened
      res.end()
    }
    const { port } = await serve(binding, handler)
    const client = connectTo(port)
    client.send({ key: 'k' })
    await written.opened
    expect([seen, client.received().byteLength]).toEqual([[true], 0])
    goOn.open()
    await client.reply()
  })

  test('an answer in pieces is sent with a length, not in chunks, and so is its replay', async () => {
    const handler: Step = (_req, res) => {
      res.write('pa')
      res.end('id')
    }
    const plain = await serve(binding, handler, { isProtected: false })
    expect((await request(plain.port)).header('Transfer-Encoding')).toBe('chunked')
    const { port } = await serve(binding, handler)
    for (let i = 0; i < 2; i++) {
      const reply = await request(port, { key: 'k' })
      expect([reply.header('Transfer-Encoding'), reply.header('Content-Length')]).toEqual([undefined, '4'])
    }
  })

  test('trailers and interim responses reach the first client alone', async () => {
    const handler: Step = (_req, res) => {
      res.writeEarlyHints({ link: '</style.css>; rel=preload; as=style' })
      res.write('paid')
      res.addTrailers({ 'X-Sum': '17' })
      res.end()
    }
    const { port } = await serve(binding, handler)
    const first = await request(port, { key: 'k' })
    const replay = await request(port, { key: 'k' })
    expect([first.interim, first.trailers]).toEqual([[103], [['X-Sum', '17']]])
    expect([replay.interim, replay.trailers]).toEqual([[], []])
  })

  describe('when the client leaves', () => {
    test('‘close’ comes to the response behind the handler’s end; req.socket tells of it at once', async () => {
      const order: string[] = []
      const started = gate()
      const handler: Step = (req, res) => {
        res.once('close', () => order.push('res close'))
        req.socket.once('close', () => {
          order.push(`socket close; res.destroyed: ${res.destroyed}, res.closed: ${res.closed}`)
          setImmediate(() => {
            order.push('end')
            res.end('paid')
          })
        })
        started.open()
      }
      const { port, once } = await serve(binding, handler)
      const client = connectTo(port)
      client.send({ key: 'k' })
      await started.opened
      client.socket.destroy()
      await once.idle()
      await new Promise((resolve) => setImmediate(resolve))
      expect(order).toEqual(['socket close; res.destroyed: false, res.closed: false', 'end', 'res close'])
    })

    test('a handler of an event stream hears it, as without the middleware', async () => {
      const closed = gate<boolean>()
      const handler: Step = (_req, res) => {
        res.writeHead(200, { 'Content-Type': 'text/event-stream' })
        res.write('data: 1\n\n')
        res.once('close', () => {
          closed.open(res.destroyed)
          res.end()
        })
      }
      const { port, once } = await serve(binding, handler)
      const client = connectTo(port)
      client.send({ key: 'k' })
      await client.firstByte
      client.socket.destroy()
      expect(await closed.opened).toBe(true)
      await once.idle()
    })

    test('and nobody ends the response, its key stays in flight', async () => {
      const closed = gate()
      const handler: Step = (_req, res) => {
        res.writeHead(200, { 'Content-Type': 'text/event-stream' })
        res.write('data: 1\n\n')
        res.once('close', () => closed.open())
      }
      const { port } = await serve(binding, handler)
      const client = connectTo(port)
      client.send({ key: 'k' })
      await client.firstByte
      client.socket.destroy()
      await closed.opened
      expect((await request(port, { key: 'k' })).json()).toMatchObject({ code: 'in_flight' })
    })
  })

  test('req.socket and res.socket are views of the socket, until the answer is out', async () => {
    let own: Socket | undefined
    const seen: unknown[] = []
    const handler: Step = (req, res) => {
      seen.push(req.socket === own, res.socket === own, req.socket.remotePort === own?.remotePort)
      res.once('finish', () => seen.push(req.socket === own))
      res.end('paid')
    }
    const { port, server } = await serve(binding, handler)
    server.once('connection', (socket) => {
      own = socket
    })
    await request(port, { key: 'k' })
    expect(seen).toEqual([false, false, true, true])
  })

  describe('a time limit that is mounted outside', () => {
    test('and answers, ends the run as a failure of unknown outcome; the signal aborts, and the handler’s own end is late', async () => {
      const running = gate()
      const stopped = gate<string>()
      let answers = 0
      const limit: Step = (_req, res, next) => {
        void running.opened.then(() => {
          if (++answers > 1) return
          res.statusCode = 503
          res.end('too late')
        })
        next()
      }
      const handler: Step = (req, res) => {
        const { previousOutcome, signal } = req.idempotency
        if (previousOutcome !== 'none') return res.end(previousOutcome)
        signal.addEventListener('abort', () => {
          stopped.open(signal.reason.code)
          res.end('paid')
        })
        running.open()
      }
      const { port } = await serve(binding, handler, { before: [limit] })
      const first = await request(port, { key: 'k' })
      expect([first.status, first.body.toString()]).toEqual([503, 'too late'])
      expect(await stopped.opened).toBe('run_failed')
      expect((await request(port, { key: 'k' })).body.toString()).toBe('unknown')
    })

    test('and closes the connection, is to the run a client that leaves: it goes on, and its end counts', async () => {
      const closed = gate()
      const handler: Step = async (req, res) => {
        req.socket.once('close', () => closed.open())
        await closed.opened
        res.end('paid')
      }
      const { port, server, once } = await serve(binding, handler)
      server.setTimeout(250)
      const client = connectTo(port)
      client.send({ key: 'k' })
      await client.closed
      await once.idle()
      server.setTimeout(0)
      const replay = await request(port, { key: 'k' })
      expect([replay.header('Idempotent-Replayed'), replay.body.toString()]).toEqual(['true', 'paid'])
    })
  })
})
