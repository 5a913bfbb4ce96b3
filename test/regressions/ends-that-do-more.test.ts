import type { ServerResponse } from 'node:http'
import { describe, expect, test } from 'vitest'
import { BINDINGS, type Step } from '../support/bindings.js'
import { connectTo } from '../support/raw-client.js'
import { serve } from '../support/serve.js'

// Earlier middleware may set a header, change the body, or write in its own `end` (or `write`): timers and signatures do. The
// head was out before it was called, and what it wrote was taken for a handler's late write: clients waited for an answer
// that did not come, or read the surplus as the next one.

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
    name: 'ends later',
    wrap: (end) =>
      function (chunk) {
        setImmediate(() => end.call(this, chunk))
        return this
      },
    body: '{"id":"po_1"}',
  },
]

describe.each(BINDINGS)('$name', (binding) => {
  test.each(wrappers)('an end that $name is heard, for an answer and for its replay', async ({ wrap, body }) => {
    const before: Step = (_req, res, next) => {
      res.end = wrap(res.end)
      next()
    }
    const handler: Step = (_req, res) => {
      res.statusCode = 201
      res.setHeader('Content-Type', 'application/json')
      res.end('{"id":"po_1"}')
    }
    const { port, runs } = await serve(binding, handler, { before: [before] })
    const client = connectTo(port)
    for (const replayed of [undefined, 'true', 'true']) {
      client.send({ key: 'k' })
      const reply = await client.reply()
      expect([reply.status, reply.header('idempotent-replayed'), reply.body.toString()]).toEqual([201, replayed, body])
    }
    client.socket.destroy()
    expect(runs()).toBe(1)
  })

  test('trailers pass an end that is wrapped', async () => {
    const before: Step = (_req, res, next) => {
      const { end } = res
      res.end = function (this: ServerResponse, ...args: unknown[]) {
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

  test('a write that sets a header is heard, for an answer that is streamed', async () => {
    const before: Step = (_req, res, next) => {
      const { write } = res
      res.write = function (this: ServerResponse, ...args: Parameters<typeof write>) {
        if (!this.headersSent) this.setHeader('X-Response-Time', '3')
        return write.apply(this, args)
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
