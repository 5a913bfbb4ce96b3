import { Buffer } from 'node:buffer'
import type { IncomingMessage, ServerResponse } from 'node:http'
import { type IdempotencyEvent, idempotency, withoutBody } from 'once-per-key'
import { MemoryStore } from 'once-per-key/memory'
import { describe, expect, test } from 'vitest'
import { BINDINGS, listen, type Step } from '../support/bindings.js'
import { failingStore } from '../support/failing-store.js'
import { gate } from '../support/gate.js'
import { bytesOf, connectTo, request } from '../support/raw-client.js'
import { serve } from '../support/serve.js'

// A handler hangs up by `req` as often as by `res`: `if (body.length > 1e6) req.connection.destroy()` stands in every other
// tutorial. Through the request it was taken for a client that had left: the key stayed in flight, and `idle()` pending,
// until `maxRunMs` was over. And one that ended its connection behind an answer took the answer away, which was stored by
// then.

interface HangUp {
  readonly name: string
  readonly hangUp: (req: IncomingMessage, res: ServerResponse) => void
}

const BY_SOCKETS: readonly HangUp[] = [
  { name: 'req.socket.destroy()', hangUp: (req) => req.socket.destroy() },
  { name: 'req.socket.destroy(error)', hangUp: (req) => req.socket.on('error', () => {}).destroy(new Error('no')) },
  { name: 'req.connection.destroy()', hangUp: (req) => req.connection.destroy() },
  { name: 'req.socket.end()', hangUp: (req) => req.socket.end() },
  { name: 'req.connection.end()', hangUp: (req) => req.connection.end() },
  { name: 'req.socket.destroySoon()', hangUp: (req) => req.socket.destroySoon() },
  { name: 'req.socket.resetAndDestroy()', hangUp: (req) => req.socket.resetAndDestroy() },
  { name: 'res.socket.destroy()', hangUp: (_req, res) => res.socket?.destroy() },
  { name: 'res.socket.end()', hangUp: (_req, res) => res.socket?.end() },
  { name: 'res.connection.end()', hangUp: (_req, res) => res.connection?.end() },
  { name: 'res.socket.destroySoon()', hangUp: (_req, res) => res.socket?.destroySoon() },
  { name: 'res.destroy()', hangUp: (_req, res) => res.destroy() },
]

describe.each(BINDINGS)('$name', (binding) => {
  test.each(BY_SOCKETS)('$name before an answer is a failure, and closes the connection', async ({ hangUp }) => {
    const handler: Step = (req, res) => {
      const { previousOutcome } = req.idempotency
      if (previousOutcome !== 'none') return res.end(previousOutcome)
      hangUp(req, res)
    }
    const { port, once, events } = await serve(binding, handler)
    const client = connectTo(port)
    client.send({ key: 'k', body: { amount: 1 } })
    await client.closed
    await once.idle()
    expect(client.received()).toHaveLength(0)
    expect(events).toContainEqual(expect.objectContaining({ type: 'failed', uncertain: true, because: 'no_answer' }))
    expect((await request(port, { key: 'k', body: { amount: 1 } })).body.toString()).toBe('unknown')
  })

  test('req.destroy() while the body is still coming is a failure, and closes the connection', async () => {
    const handler: Step = (req) => {
      req.on('error', () => {})
      req.destroy()
    }
    const events: string[] = []
    const fingerprint = withoutBody(() => null)
    const onEvent = ({ type }: IdempotencyEvent) => void events.push(type)
    const once = idempotency({ store: new MemoryStore(), scope: () => 'acme', fingerprint, onEvent })
    const { port, close } = await listen(binding.listener([once as Step, handler]))
    const client = connectTo(port)
    client.socket.write('POST / HTTP/1.1\r\nHost: test\r\nIdempotency-Key: k\r\nContent-Length: 12\r\n\r\n{"amo')
    await client.closed
    await once.idle()
    await close()
    expect(events).toEqual(['claimed', 'failed'])
  })

  test('req.destroy() after the body was read is nothing, as without the middleware', async () => {
    const handler: Step = (req, res) => {
      req.destroy()
      setImmediate(() => res.end('paid'))
    }
    for (const isProtected of [true, false]) {
      const { port } = await serve(binding, handler, { isProtected })
      expect((await request(port, { key: 'k', body: { amount: 1 } })).body.toString()).toBe('paid')
    }
  })

  test.each(BY_SOCKETS)(
    '$name behind an answer: its client gets the answer first, then the end',
    async ({ hangUp }) => {
      const asked = gate()
      const confirm = gate()
      const store = failingStore()
      store.next('complete', async (take) => {
        asked.open()
        await confirm.opened
        return take()
      })
      const handler: Step = (req, res) => {
        res.end('paid')
        hangUp(req, res)
      }
      const { port } = await serve(binding, handler, { options: { store } })
      const client = connectTo(port)
      client.send({ key: 'k' })
      await asked.opened
      confirm.open()
      expect((await client.reply()).body.toString()).toBe('paid')
      await client.closed
      expect((await request(port, { key: 'k' })).header('Idempotent-Replayed')).toBe('true')
    },
  )

  test.each(BY_SOCKETS)('$name behind a stream: its client gets the end first', async ({ hangUp }) => {
    const handler: Step = (req, res) => {
      res.flushHeaders()
      res.end('paid')
      hangUp(req, res)
    }
    const { port } = await serve(binding, handler)
    const client = connectTo(port)
    client.send({ key: 'k' })
    expect((await client.reply()).body.toString()).toBe('paid')
    await client.closed
  })

  test.each(BY_SOCKETS)('$name once the answer is out ends the connection at once', async ({ hangUp }) => {
    const handler: Step = (req, res) => {
      res.once('finish', () => hangUp(req, res))
      res.end('paid')
    }
    const { port } = await serve(binding, handler)
    const client = connectTo(port)
    client.send({ key: 'k' })
    expect((await client.reply()).body.toString()).toBe('paid')
    if (hangUp.toString().includes('res.')) client.socket.end() // Node has taken its socket from the response.
    await client.closed
  })

  test('a request that was sent ahead behind one that hangs up is not answered, as without the middleware', async () => {
    const handler: Step = (req, res) => {
      res.end('paid')
      req.socket.end()
    }
    for (const isProtected of [true, false]) {
      const { port } = await serve(binding, handler, { isProtected })
      const client = connectTo(port)
      client.socket.write(Buffer.concat([bytesOf({ key: 'a' }), bytesOf({ key: 'b' })]))
      expect((await client.reply()).body.toString()).toBe('paid')
      await client.closed
      expect(client.received()).toHaveLength(0)
    }
  })
})
