import { MemoryStore } from 'once-per-key/memory'
import { runner } from 'once-per-key/run'
import { expect, test } from 'vitest'
import { failingStore } from '../support/failing-store.js'
import { mustNotRun, OPERATION, rejection } from './runner-on-trial.js'

const DAY_MS = 24 * 3_600_000
const ago = (ms: number) => new Date(Date.now() - ms)

test('a job that was created before the retention is not run: its record may be gone', async () => {
  const once = runner({ store: new MemoryStore(), name: 'payouts' })
  const late = once({ ...OPERATION, firstSent: ago(DAY_MS) }, mustNotRun)
  expect(await rejection(late)).toMatchObject({ name: 'RefusedError', code: 'key_expired', retryAfterMs: null })
})

test('a younger one runs, and a late repeat gets its result while the record lives', async () => {
  const once = runner({ store: new MemoryStore(), name: 'payouts' })
  expect(await once({ ...OPERATION, firstSent: ago(DAY_MS - 600_000) }, async () => 1)).toBe(1)
  expect(await once({ ...OPERATION, firstSent: ago(2 * DAY_MS) }, mustNotRun)).toBe(1)
})

test('`clockSkewMs` is an option of the runner', async () => {
  const store = new MemoryStore()
  const once = runner({ store, name: 'payouts', clockSkewMs: 0 })
  expect(await once({ ...OPERATION, firstSent: ago(DAY_MS - 60_000) }, async () => 1)).toBe(1)
  expect(() => runner({ store, name: 'payouts', clockSkewMs: DAY_MS })).toThrow(
    /clockSkewMs: 86400000 is not less than/,
  )
})

test.each([
  { name: 'an invalid date', store: new MemoryStore(), firstSent: new Date(Number.NaN), code: 'arguments_invalid' },
  { name: 'a store without `inspect`', store: failingStore(), firstSent: new Date(), code: 'command_missing' },
])('$name is misuse', async ({ store, firstSent, code }) => {
  const once = runner({ store, name: 'payouts' })
  expect(await rejection(once({ ...OPERATION, firstSent }, mustNotRun))).toMatchObject({ code })
})
