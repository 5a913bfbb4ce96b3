import type { Answer } from 'once-per-key/core'
import { MemoryStore } from 'once-per-key/memory'
import { expect, test } from 'vitest'
import { fakeClock } from '../../support/fake-clock.js'

const TERMS = {
  token: 'owner',
  scope: 'acme',
  fingerprint: 'f',
  leaseMs: 1_000,
  retentionMs: 10_000,
  unknownOutcome: 'rerun',
} as const
const RESOLVED = { token: 'operator', attempt: 1, retentionMs: 10_000 }

/** A store with one record, whose owner stalled. */
async function stalled(options: ConstructorParameters<typeof MemoryStore>[0] = {}) {
  const clock = fakeClock()
  const store = new MemoryStore({ ...options, now: clock.now })
  await store.begin('k', TERMS)
  clock.advance(TERMS.leaseMs)
  return { store, clock }
}

test('an operator may reuse the bytes that it handed in, and change the answer that it is shown', async () => {
  const { store } = await stalled()
  const headers: [string, string][] = [['x-first', '1']]
  const answer: Answer = { status: 201, statusMessage: '', headers, body: Buffer.from('answer') }
  await store.resolve('k', { ...RESOLVED, answer })
  answer.body?.fill(0)
  headers.push(['x-second', '2'])
  const first = await store.inspect('k')
  const kept = { headers: [['x-first', '1']], body: Buffer.from('answer') }
  expect(first).toMatchObject({ state: 'completed', answer: kept })
  if (first?.state === 'completed') first.answer?.body?.fill(0)
  expect(await store.inspect('k')).toMatchObject({ answer: kept })
})

test('a store that is full refuses claims, and is resolved all the same', async () => {
  const { store } = await stalled({ maxBytes: 700, maxEntries: 1 })
  await expect(async () => store.begin('new', TERMS)).rejects.toMatchObject({ code: 'store_full' })
  const answer = { status: 201, statusMessage: '', headers: [], body: Buffer.alloc(10_000) }
  expect(await store.resolve('k', { ...RESOLVED, answer })).toEqual({ ok: true })
  expect(await store.inspect('k')).toMatchObject({ state: 'completed' })
})

test('a key that was resolved as failed makes room for a new claim', async () => {
  const { store } = await stalled({ maxEntries: 1 })
  await store.resolve('k', { ...RESOLVED, answer: null })
  expect(await store.begin('new', TERMS)).toMatchObject({ acquired: true })
  expect(await store.inspect('k')).toEqual({ state: 'failed', fingerprint: null, attempt: 1, uncertain: false })
})

test('to look at a record does not keep it, nor let it go earlier', async () => {
  const { store, clock } = await stalled({ maxEntries: 1 })
  clock.advance(TERMS.retentionMs - TERMS.leaseMs - 1)
  expect(await store.inspect('k')).not.toBeNull()
  clock.advance(1)
  expect(await store.inspect('k')).toBeNull()
})
