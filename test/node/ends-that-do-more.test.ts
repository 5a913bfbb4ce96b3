import type { ServerResponse } from 'node:http'
import { Readable } from 'node:stream'
import { describe, expect, test } from 'vitest'
import { BINDINGS, FULL, type Step } from '../support/bindings.js'
import { connectTo } from '../support/raw-client.js'
import { serve } from '../support/serve.js'
import { OTHERS, takenOver } from '../support/taken-over.js'

// Earlier middleware may set a header, change the body, or write in its own `end` (or `write`): timers and signatures do. The
// head was out before it was called, and what it wrote was taken for a handler's late write: clients waited for an answer
// that did not come, or read the surplus as the next one. So it was where an answer that is counted by its `end` was announced
// with the length that it had before.

type End = (this: ServerResponse, chunk?: unknown) => ServerResponse

const wrappers: { readonly name: string; readonly wrap: (end: End) => End; readonly body: string }[] = [
  {
    name: 'sets a header',
    wrap: (end) =>
      function (chunk) {
        this.setHeader('X-Response-Time', '3')
        return end.call(this, chunk)
      },
    body: '{"id":"po_1"}',
  },
  {
    name: 'changes the body',
    wrap: (end) =>
      function (chunk) {
        const changed = `{"data":${chunk}}`
        if (!this.headersSent) this.setHeader('Content-Length', changed.length)
        return end.call(this, changed)
      },
    body: '{"data":{"id":"po_1"}}',
  },
  {
    name: 'writes',
    wrap: (end) =>
      function (chunk) {
        this.write(chunk)
        return end.call(this)
      },
    body: '{"id":"po_1"}',
  },
  {
    name: 'asks for the head',
    wrap: (end) =>
      function (chunk) {
        if (!this.headersSent) this.writeHead(this.statusCode, { 'X-Response-Time': '3' })
        return end.call(this, chunk)
      },
    body: '{"id":"po_1"}',
  },
  {
    name: 'ends the response again, behind a guard',
    wrap: (end) => {
      let isAgain = false
      return function (chunk) {
        if (isAgain) return end.call(this, chunk)
        isAgain = true
        return this.end(chunk)
      }
    },
    body: '{"id":"po_1"}',
  },
  {
    name: 'ends the response again later',
    wrap: (end) => {
      let isAgain = false
      return function (chunk) {
        if (isAgain) return end.call(this, chunk)
        isAgain = true
        setImmediate(() => this.end(chunk))
        return this
      }
    },
    body: '{"id":"po_1"}',
  },
  {
    name: 'sets a header, writes and ends later',
    wrap: (end) =>
      function (chunk) {
        setImmediate(() => {
          this.setHeader('X-Saved', '1')
          this.write(chunk)
          end.call(this)
        })
        return this
      },
    body: '{"id":"po_1"}',
  },
  {
    name: 'writes a part, and the rest later',
    wrap: (end) =>
      function (chunk) {
        const text = `${chunk}`
        this.write(text.slice(0, 3))
        setImmediate(() => {
          this.write(text.slice(3))
          end.call(this)
        })
        return this
      },
    body: '{"id":"po_1"}',
  },
  {
    name: 'takes itself off, writes, and ends the response later',
    wrap: (end) =>
      function (chunk) {
        this.end = end as ServerResponse['end']
        this.write(chunk)
        setImmediate(() => this.end())
        return this
      },
    body: '{"id":"po_1"}',
  },
  {
    name: 'ends later',
    wrap: (end) =>
      function (chunk) {
        setImmediate(() => end.call(this, chunk))
        return this
      },
    body: '{"id":"po_1"}',
  },
]

function wrapped(wrap: (end: End) => End): Step {
  return (_req, res, next) => {
    res.end = wrap(res.end)
    next()
  }
}

describe.each(BINDINGS)('$name', (binding) => {
  test.each(wrappers)('an end that $name is heard, for an answer and for its replay', async ({ wrap, body }) => {
    const handler: Step = (_req, res) => {
      res.statusCode = 201
      res.setHeader('Content-Type', 'application/json')
      res.end('{"id":"po_1"}')
    }
    const { port, runs } = await serve(binding, handler, { before: [wrapped(wrap)] })
    const client = connectTo(port)
    for (const replayed of [undefined, 'true', 'true']) {
      client.send({ key: 'k' })
      const reply = await client.reply()
      expect([reply.status, reply.header('idempotent-replayed'), reply.body.toString()]).toEqual([201, replayed, body])
    }
    client.socket.destroy()
    expect(runs()).toBe(1)
  })

  test.each(wrappers)('an end that $name is heard where another answer is sent in place', async ({ wrap }) => {
    const options = { store: takenOver({ completed: true }) }
    const { port } = await serve(binding, (_req, res) => res.end('{"id":"po_2"}'), { before: [wrapped(wrap)], options })
    const client = connectTo(port)
    client.send({ key: 'k' })
    expect((await client.reply()).body.toString()).toContain(OTHERS.body?.toString())
    client.socket.destroy()
  })

  test.each([
    {
      name: 'writes the body and more',
      body: 'paid, signed',
      wrap: (end: End): End =>
        function (chunk) {
          if (chunk) this.write(chunk)
          return end.call(this, ', signed')
        },
    },
    {
      name: 'makes the body longer',
      body: '<paid>',
      wrap: (end: End): End =>
        function (chunk) {
          return end.call(this, `<${chunk}>`)
        },
    },
  ])('an end that $name leaves its connection in order', async ({ wrap, body }) => {
    const { port } = await serve(binding, (_req, res) => void Readable.from(['paid']).pipe(res), {
      before: [wrapped(wrap)],
    })
    const client = connectTo(port)
    for (let i = 0; i < 3; i++) {
      client.send({ key: 'k' })
      expect((await client.reply()).body.toString()).toBe(body)
    }
    expect(client.received().byteLength).toBe(0)
    client.socket.destroy()
  })

  test('behind compression and a session, a replay and a refusal have a length where the first answer had one', async () => {
    const handler: Step = (_req, res) => {
      res.setHeader('Content-Length', 4)
      res.end('paid')
    }
    const { port } = await serve(binding, handler, { stack: FULL })
    const client = connectTo(port)
    for (const amount of [1, 1, 2]) {
      client.send({ key: 'k', body: { amount } })
      const reply = await client.reply()
      expect([reply.header('content-length'), reply.header('transfer-encoding')]).toEqual([
        `${reply.body.byteLength}`,
        undefined,
      ])
    }
    client.socket.destroy()
  })

  test('trailers pass an end that is wrapped', async () => {
    const before: Step = (_req, res, next) => {
      const { end } = res
      res.end = function (this: ServerResponse, ...args: unknown[]) {
        this.setHeader('X-Response-Time', '3')
        return end.apply(this, args as never)
      }
      next()
    }
    const handler: Step = (_req, res) => {
      res.write('paid')
      res.addTrailers({ 'X-Checksum': '77' })
      res.end()
    }
    const { port } = await serve(binding, handler, { before: [before] })
    const client = connectTo(port)
    client.send({ key: 'k' })
    const reply = await client.reply()
    client.socket.destroy()
    expect([reply.body.toString(), reply.trailers]).toEqual(['paid', [['X-Checksum', '77']]])
  })

  test('a late end of the handler changes nothing of an answer that waits for its end', async () => {
    const before: Step = (_req, res, next) => {
      const { end } = res
      let ended = false
      res.end = function (this: ServerResponse, ...args: unknown[]) {
        if (!ended) setImmediate(() => end.apply(this, args as never))
        ended = true
        return this
      }
      next()
    }
    const handler: Step = (_req, res) => {
      res.end('paid')
      res.end('twice')
    }
    const { port } = await serve(binding, handler, { before: [before] })
    const client = connectTo(port)
    client.send({ key: 'k' })
    expect((await client.reply()).body.toString()).toBe('paid')
    client.socket.destroy()
  })

  test.each([
    { when: 'at once', queue: (work: () => void) => work() },
    { when: 'later', queue: (work: () => void) => void setImmediate(work) },
  ])('a write that sets a header $when is heard, for an answer that is streamed', async ({ queue }) => {
    const before: Step = (_req, res, next) => {
      const { write, end } = res
      res.write = function (this: ServerResponse, ...args: Parameters<typeof write>) {
        queue(() => {
          if (!this.headersSent) this.setHeader('X-Response-Time', '3')
          write.apply(this, args)
        })
        return true
      }
      res.end = function (this: ServerResponse, ...args: unknown[]) {
        queue(() => end.apply(this, args as never))
        return this
      }
      next()
    }
    const handler: Step = (_req, res) => {
      res.write('a'.repeat(2_000))
      res.end('b')
    }
    const { port } = await serve(binding, handler, { before: [before], options: { maxAnswerBytes: 1_000 } })
    const client = connectTo(port)
    client.send({ key: 'k' })
    const reply = await client.reply()
    client.socket.destroy()
    expect([reply.header('x-response-time'), reply.body.byteLength]).toEqual(['3', 2_001])
  })
})
