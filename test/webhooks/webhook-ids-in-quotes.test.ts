import { expect, test } from 'vitest'
import { BINDINGS } from '../support/bindings.js'
import { deliver, merchantUpdated, receive } from '../support/deliveries.js'

// The id of an event was read like the value of a header, where `"evt_1"` in quotes and the bare `evt_1` are one key. But
// an id is a JSON string, and its quotes belong to it: the second of two such events was answered 200 as a repeat of the
// first, and never handled.

const [express5] = BINDINGS as [(typeof BINDINGS)[0]]

test('an id in quotes and the bare one are two events', async () => {
  const { port, handled, events } = await receive(express5)
  const ids = ['evt_1', 'EVT_1', '"evt_1"', '"\\"evt_1\\""', '"evt_1', "'evt_1'", '""']
  for (const id of ids) {
    const reply = await deliver(port, { body: merchantUpdated({ id }) })
    expect([id, reply.status, reply.header('idempotent-replayed')]).toEqual([id, 200, undefined])
  }
  expect(handled.map(({ event }) => event.id)).toEqual(ids)
  expect(events.flatMap((event) => (event.type === 'completed' ? [event.key] : []))).toEqual(ids)
  for (const id of ids) {
    expect((await deliver(port, { body: merchantUpdated({ id }) })).header('idempotent-replayed')).toBe('true')
  }
})
