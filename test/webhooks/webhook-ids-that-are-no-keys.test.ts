import { createHash } from 'node:crypto'
import { createRequestEngine, singleTenant } from 'once-per-key/http'
import { describe, expect, test } from 'vitest'
import { BINDINGS } from '../support/bindings.js'
import { deliver, merchantUpdated, receive } from '../support/deliveries.js'

// The document says that the id of an event is a string. One that is longer than a key may be, or that holds a control
// character, was refused with 400 each time that it was sent, until its sender gave up: the event was lost.

const [express5] = BINDINGS as [(typeof BINDINGS)[0]]

/** Frozen: a record that was stored before an upgrade must be found after it. */
const keyOf = (id: string) => `webhook-id-sha256:${createHash('sha256').update(id).digest('base64url')}`
const LONG = 'a'.repeat(256)
const NO_KEYS = [
  LONG,
  'a'.repeat(100_000),
  'é'.repeat(256),
  '😀'.repeat(256),
  'a\u0000b',
  'a\nb',
  '\u0085',
  keyOf(LONG),
]

async function receiveAll(ids: readonly string[]) {
  const receiving = await receive(express5)
  const send = (id: string) => deliver(receiving.port, { body: merchantUpdated({ id }) })
  for (const id of ids) {
    const reply = await send(id)
    expect([id, reply.status, reply.header('idempotent-replayed')]).toEqual([id, 200, undefined])
  }
  for (const id of ids) expect((await send(id)).header('idempotent-replayed')).toBe('true')
  expect(receiving.handled.map(({ event }) => event.id)).toEqual(ids)
  return receiving.events.flatMap((event) => (event.type === 'completed' ? [event.key] : []))
}

test('an event whose id can be no key is handled once, and has the digest of its id for a key', async () => {
  expect(await receiveAll(NO_KEYS)).toEqual(NO_KEYS.map(keyOf))
  expect(keyOf(LONG)).toBe('webhook-id-sha256:AtcWDXfhjGRHvoDC41XH7UOIVFJxcCxQJTsJFMZc5f4')
})

test('an id that can be a key is the key, as in the versions before', async () => {
  const ids = ['evt_1', 'a'.repeat(255), '😀'.repeat(255), '"evt_1"', 'sha256:abc', 'webhook-id', ' ', ':']
  expect(await receiveAll(ids)).toEqual(ids)
})

describe('two ids are two events', () => {
  test.each([
    ['that differ behind their 255th character', `${LONG}b`, `${LONG}c`],
    ['that differ in a control character', 'a\u0000b', 'a\u0001b'],
    ['of which one is written like the digest of the other', LONG, keyOf(LONG)],
    ['of which one is written like the digest of a digest', keyOf(LONG), keyOf(keyOf(LONG))],
  ])('%s', async (_name, one, other) => {
    expect(new Set(await receiveAll([one, other])).size).toBe(2)
  })
})

test('an operator finds the record by the key that events name', async () => {
  const { port, store, events } = await receive(express5)
  await deliver(port, { body: merchantUpdated({ id: LONG }) })
  const key = events.flatMap((event) => (event.type === 'completed' ? [event.key] : []))[0] as string
  const operator = createRequestEngine({ store, scope: singleTenant })
  expect(await operator.inspect({ namespace: 'webhook', scope: 'payments', key })).toMatchObject({ state: 'completed' })
})
