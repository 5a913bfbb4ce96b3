import { Buffer } from 'node:buffer'
import { request } from 'node:http'
import type { AddressInfo } from 'node:net'
import express, { type RequestHandler } from 'express'
import { idempotency } from 'once-per-key'
import { MemoryStore } from 'once-per-key/memory'
import { expect, onTestFinished, test } from 'vitest'

// Express hands `end` a Buffer, so whoever wraps it may know nothing else. A short body that was handed over as text failed
// in such a wrapper after its record had been settled, or had its head written as UTF-8 where the encoding was dropped.

type End = (this: unknown, chunk?: unknown) => never

const WRAPPERS: Record<string, (end: End) => (this: unknown, chunk?: unknown) => unknown> = {
  'knows bytes alone': (end) =>
    function (this: unknown, ...args) {
      Buffer.concat(args[0] === undefined ? [] : [args[0] as Buffer])
      return end.apply(this, args)
    },
  'drops the encoding': (end) =>
    function (this: unknown, chunk) {
      return end.call(this, chunk)
    },
}

test.each(Object.keys(WRAPPERS))('an `end` that %s passes on a run, a replay and a refusal', async (name) => {
  const wrap: RequestHandler = (_req, res, next) => {
    res.end = WRAPPERS[name]?.(res.end as End) as typeof res.end
    next()
  }
  const once = idempotency({ store: new MemoryStore(), scope: () => 'acme' })
  const server = express()
    .use(wrap)
    .post('/payouts', express.json(), once, (_req, res) => {
      res.setHeader('X-Name', 'Zoë')
      res.status(201).json({ id: 1 })
    })
    .listen(0)
  onTestFinished(() => void server.close())
  const { port } = server.address() as AddressInfo

  const run = { status: 201, name: 'Zoë', body: '{"id":1}' }
  expect(await pay(port, { amount: 5000 })).toMatchObject(run)
  expect(await pay(port, { amount: 5000 })).toMatchObject(run)
  expect(await pay(port, { amount: 5001 })).toMatchObject({ status: 409, body: expect.stringContaining('mismatched') })
})

/** By `node:http`, which shows each byte of a header as a character. */
function pay(port: number, order: object): Promise<{ status?: number | undefined; name: unknown; body: string }> {
  const headers = { 'Content-Type': 'application/json', 'Idempotency-Key': 'order-1001' }
  return new Promise((resolve, reject) => {
    request({ port, method: 'POST', path: '/payouts', headers, agent: false }, (res) => {
      let body = ''
      res.on('data', (piece) => {
        body += piece
      })
      res.on('end', () => resolve({ status: res.statusCode, name: res.headers['x-name'], body }))
    })
      .on('error', reject)
      .end(JSON.stringify(order))
  })
}
