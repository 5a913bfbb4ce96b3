import { MemoryStore } from 'once-per-key/memory'
import { expect, test } from 'vitest'

// The record lost its place before its bytes were copied: it was completed without them, counted nowhere, and could not be forgotten.
test('an answer whose bytes cannot be copied leaves the record as it was', async () => {
  const store = new MemoryStore()
  const own = { token: 't', scope: 'acme', fingerprint: 'f', retentionMs: 60_000 }
  await store.begin('acme:a', { ...own, leaseMs: 10_000, unknownOutcome: 'rerun' })
  const body = new Uint8Array(8)
  structuredClone(body.buffer, { transfer: [body.buffer] })
  const answer = { status: 201, statusMessage: '', headers: [], body }
  const complete = (given: typeof answer) =>
    store.complete('acme:a', { ...own, attempt: 1, uncertain: false, answer: given })

  expect(() => complete(answer)).toThrow('detached')
  expect(await store.inspect('acme:a')).toMatchObject({ state: 'in-flight', attempt: 1 })
  expect(await complete({ ...answer, body: new Uint8Array(2) })).toEqual({ ok: true })
  expect(await store.inspect('acme:a')).toMatchObject({ state: 'completed', answer: { status: 201 } })
})
