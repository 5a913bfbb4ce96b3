import { idempotency, singleTenant } from 'once-per-key'
import { MemoryStore } from 'once-per-key/memory'
import { expect, onTestFinished, test } from 'vitest'
import { BINDINGS } from '../support/bindings.js'
import { begin, deliver, merchantUpdated, receive } from '../support/deliveries.js'
import { gate } from '../support/gate.js'

// An operator may give a delivery's record an answer with several lines of one header. The receiver set them one by one, so
// its sender was replayed the last line alone.

const [express5] = BINDINGS as [(typeof BINDINGS)[0]]

test('an answer that an operator gave an event is replayed with each line of a header', async () => {
  let now = 0
  const store = new MemoryStore({ now: () => now })
  const stalled = gate()
  onTestFinished(() => stalled.open())
  const { port, seen } = await receive(express5, { options: { store }, handler: () => stalled.opened })
  begin(port, { body: merchantUpdated({ id: 'evt_1' }) })
  const operator = idempotency({ store, scope: singleTenant })
  const name = { namespace: 'webhook', scope: 'payments', key: 'evt_1', attempt: 1 } as const
  await seen('claimed')
  now = 30_000
  const headers = { Link: ['</a>; rel="next"', '</b>; rel="prev"'] }
  expect(await operator.resolve(name, { completed: { status: 200, headers } })).toEqual({ ok: true })

  const reply = await deliver(port, { body: merchantUpdated({ id: 'evt_1' }) })
  expect(reply.lines('Link')).toEqual(headers.Link)
})
