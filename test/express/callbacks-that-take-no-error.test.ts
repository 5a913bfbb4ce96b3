import { once } from 'node:events'
import { createServer, type RequestListener } from 'node:http'
import { idempotency, singleTenant } from 'once-per-key'
import { MemoryStore } from 'once-per-key/memory'
import { beforeEach, expect, onTestFinished, test, vi } from 'vitest'

// On plain node:http whoever writes the callback writes what Express is elsewhere: one without a parameter cannot be told of an error.

const printed = vi.spyOn(console, 'error')
beforeEach(() => void printed.mockReset().mockImplementation(() => {}))

const protect = idempotency({ store: new MemoryStore(), scope: singleTenant })

async function statusOf(listener: RequestListener, init: RequestInit): Promise<number> {
  const server = createServer(listener).listen(0, '127.0.0.1')
  onTestFinished(() => void server.close())
  await once(server, 'listening')
  const { port } = server.address() as { port: number }
  const response = await fetch(`http://127.0.0.1:${port}/`, { method: 'POST', ...init })
  await response.text() // Rejects if the body is not as announced.
  return response.status
}

function told(code: string | undefined) {
  expect(printed.mock.calls).toEqual([
    [
      expect.objectContaining({
        code: 'arguments_invalid',
        message: expect.stringContaining('once(req, res, (error) => { … })'),
        cause: expect.objectContaining(code === undefined ? { message: 'after paying' } : { code }),
      }),
    ],
  ])
}

test('a request that is misuse is not handled unprotected', async () => {
  const pay = vi.fn()
  const body = JSON.stringify({ amount: 5 })
  const headers = { 'Idempotency-Key': 'unparsed', 'Content-Type': 'application/json' }
  const listener: RequestListener = (req, res) => protect(req, res, () => res.end(pay()))
  expect(await statusOf(listener, { body, headers })).toBe(500)
  expect(pay).not.toHaveBeenCalled()
  told('body_not_parsed')
})

test('a handler that throws does not run again, and its outcome is unknown', async () => {
  const pay = vi.fn(() => {
    throw new Error('after paying')
  })
  const listener: RequestListener = (req, res) => protect(req, res, pay)
  expect(await statusOf(listener, { headers: { 'Idempotency-Key': 'throws' } })).toBe(500)
  expect(pay).toHaveBeenCalledOnce()
  told(undefined)
  expect(await protect.inspect({ scope: singleTenant(), key: 'throws' })).toMatchObject({
    state: 'failed',
    uncertain: true,
  })
})

test('a handler that throws after it has announced a body: its client gets 500, without one', async () => {
  const listener: RequestListener = (req, res) =>
    protect(req, res, () => {
      res.setHeader('Content-Type', 'application/json')
      res.setHeader('Content-Length', 20)
      throw new Error('after paying')
    })
  expect(await statusOf(listener, { headers: { 'Idempotency-Key': 'announced' } })).toBe(500)
})

test('an answer that had ended before the throw is sent', async () => {
  const listener: RequestListener = (req, res) =>
    protect(req, res, () => {
      res.statusCode = 201
      res.end('paid')
      throw new Error('after paying')
    })
  expect(await statusOf(listener, { headers: { 'Idempotency-Key': 'answered' } })).toBe(201)
})

test('a request without a key reaches it as ever', async () => {
  const listener: RequestListener = (req, res) => protect(req, res, () => res.writeHead(202).end())
  expect(await statusOf(listener, {})).toBe(202)
  expect(printed).not.toHaveBeenCalled()
})

test('a callback that takes errors gets them', async () => {
  const listener: RequestListener = (req, res) =>
    protect(req, res, (error) => res.writeHead(error === undefined ? 200 : 422).end())
  const init = { body: '{}', headers: { 'Idempotency-Key': 'heard', 'Content-Type': 'application/json' } }
  expect(await statusOf(listener, init)).toBe(422)
  expect(printed).not.toHaveBeenCalled()
})
