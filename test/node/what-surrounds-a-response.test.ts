import type { AddressInfo } from 'node:net'
import express, { type RequestHandler } from 'express'
import { type IdempotencyContext, idempotency } from 'once-per-key'
import { MemoryStore } from 'once-per-key/memory'
import { expect, onTestFinished, test } from 'vitest'

// Request, response and context pass through hands that the middleware does not know: what they did before must not make a
// run fail that was claimed, and what they watch must come past them.

async function served(before: RequestHandler, handler: RequestHandler): Promise<() => Promise<Response>> {
  const once = idempotency({ store: new MemoryStore(), scope: () => 'acme', keepHeader: () => true })
  const server = express().post('/payouts', before, express.json(), once, handler).listen(0)
  onTestFinished(() => void server.close())
  const { port } = server.address() as AddressInfo
  const headers = { 'Content-Type': 'application/json', 'Idempotency-Key': 'order-1001' }
  return () => fetch(`http://localhost:${port}/payouts`, { method: 'POST', headers, body: '{"amount":5000}' })
}

test('a property that may not be deleted stays', async () => {
  const pay = await served(
    (req, res, next) => {
      for (const message of [req, res]) {
        Object.defineProperty(message, '_maxListeners', { value: 77, writable: true, configurable: false })
      }
      next()
    },
    (_req, res) => void res.status(201).json({}),
  )
  expect((await pay()).status).toBe(201)
})

test('whoever wrapped setHeader sees all lines of a replayed header', async () => {
  const pay = await served(
    (_req, res, next) => {
      const { setHeader } = res
      res.setHeader = (name, value) => {
        const hardened = Array.isArray(value) ? value.map((line) => `${line}; Secure`) : value
        return setHeader.call(res, name, hardened)
      }
      next()
    },
    (_req, res) => {
      res.setHeader('Link', ['<a>', '<b>'])
      res.status(201).json({})
    },
  )
  await pay()
  const replayed = await pay()
  expect(replayed.headers.get('Idempotent-Replayed')).toBe('true')
  expect(replayed.headers.get('Link')).toBe('<a>; Secure; Secure, <b>; Secure; Secure')
})

test('a context behind a proxy, inherited from, or copied has its signal', async () => {
  const seen: unknown[] = []
  const pay = await served(
    (_req, _res, next) => next(),
    (req, res) => {
      const context = req.idempotency as IdempotencyContext
      const copy = Object.create(null, Object.getOwnPropertyDescriptors(context)) as IdempotencyContext
      const views = [new Proxy(context, {}), Object.create(context) as IdempotencyContext, { ...context }, copy]
      seen.push(...views.map(({ signal }) => signal === context.signal))
      res.status(201).json({})
    },
  )
  await pay()
  expect(seen).toEqual([true, true, true, true])
})

test('whoever hooks the head of an answer that is sent sees the socket that it knew', async () => {
  const seen: boolean[] = []
  const pay = await served(
    (_req, res, next) => {
      const { socket, writeHead } = res
      res.writeHead = ((...args: Parameters<typeof writeHead>) => {
        seen.push(res.socket === socket)
        return writeHead.apply(res, args)
      }) as typeof writeHead
      next()
    },
    (_req, res) => void res.status(201).json({}),
  )
  await pay()
  expect(seen).toEqual([true])
})
