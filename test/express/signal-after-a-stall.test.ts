import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import express from 'express'
import { idempotency, singleTenant } from 'once-per-key'
import { MemoryStore } from 'once-per-key/memory'
import { expect, onTestFinished, test, vi } from 'vitest'

// The signal was aborted by a timer alone, and a process that was stopped may hear its sockets before its timers: a handler
// that looked at its signal in that moment went on to pay, although its lease was long over.
test('a handler that goes on after its process was stopped finds its signal aborted, before any timer has fired', async () => {
  onTestFinished(() => void vi.useRealTimers())
  const leaseMs = 30_000
  const seen: boolean[] = []
  const events: string[] = []
  const app = express()
  const protect = idempotency({
    store: new MemoryStore(),
    scope: singleTenant,
    leaseMs,
    onEvent: ({ type }) => events.push(type),
  })
  app.post('/', protect, (req, res) => {
    const look = () => seen.push(req.idempotency?.signal.aborted === true)
    look()
    vi.advanceTimersByTime(leaseMs - 1_000)
    look()
    vi.advanceTimersByTime(1_000)
    look()
    res.json({ paid: true })
  })
  const server = createServer(app).listen(0)
  onTestFinished(() => void server.close())
  vi.useFakeTimers({ toFake: ['performance'] }) // The clock moves, and no timer fires.

  const { port } = server.address() as AddressInfo
  await fetch(`http://localhost:${port}/`, { method: 'POST', headers: { 'Idempotency-Key': 'a' } })

  expect(seen).toEqual([false, false, true])
  expect(events.filter((type) => type === 'lease_lost')).toHaveLength(1)
})
