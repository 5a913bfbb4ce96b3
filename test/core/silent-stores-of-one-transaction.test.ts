import type { CommandReply, Looked, Store } from 'once-per-key/core'
import { afterEach, beforeEach, expect, test, vi } from 'vitest'
import { engineOnTrial, outcomeOf, TIMES } from '../support/engine-on-trial.js'
import { failingStore } from '../support/failing-store.js'
import { answer } from '../support/request-facts.js'

// With all effects in the transaction, nothing that was answered outside of it is sent before the store was asked once more.

beforeEach(() => void vi.useFakeTimers())
afterEach(() => void vi.useRealTimers())

const FREE = { acquired: true, attempt: 1, previousOutcome: 'none', seen: null } as const satisfies Looked
const HELD: CommandReply = { ok: false, record: null }
const silence = new Promise<never>(() => {})
const FAILED = expect.objectContaining({ type: 'failed', uncertain: true, because: 'no_transaction' })

/** A run that has answered without a transaction. The store is silent, but for these replies to its `withhold`, in turn. */
async function answeredBy(status: number, ...replies: readonly (CommandReply | Promise<never>)[]) {
  const left = [...replies]
  const unclaimed: Store['unclaimed'] = {
    look: () => FREE,
    fence: () => silence,
    withhold: () => left.shift() ?? silence,
  }
  const { run, engine, events } = engineOnTrial(
    { effects: 'in-transaction' },
    Object.assign(failingStore(), { unclaimed }),
  )
  let sent: string | undefined
  let isIdle = false
  void Promise.resolve((await run()).settle(answer(status))).then((end) => {
    sent = outcomeOf(end)
  })
  void engine.idle().then(() => {
    isIdle = true
  })
  return async (ms: number) => {
    await vi.advanceTimersByTimeAsync(ms)
    return { sent, isIdle, told: events.filter(({ type }) => type !== 'store_failed') }
  }
}

test('a failure behind which the store is silent is withheld, and the run is over', async () => {
  const after = await answeredBy(422)
  expect(await after(TIMES.storeTimeoutMs)).toEqual({ sent: 'store_unavailable', isIdle: true, told: [] })
})

test('a success behind which the store is silent is withheld, and recording that is tried until maxRunMs', async () => {
  const after = await answeredBy(201)
  expect(await after(TIMES.storeTimeoutMs)).toEqual({ sent: 'store_unavailable', isIdle: false, told: [] })
  expect(await after(TIMES.maxRunMs - 2 * TIMES.storeTimeoutMs)).toMatchObject({ isIdle: false })
  expect(await after(3 * TIMES.storeTimeoutMs)).toEqual({ sent: 'store_unavailable', isIdle: true, told: [] })
})

test('where the store answers later, the outcome is unknown from then on', async () => {
  const after = await answeredBy(201, silence, silence, { ok: true })
  expect(await after(2 * TIMES.storeTimeoutMs)).toMatchObject({ sent: 'store_unavailable', isIdle: false, told: [] })
  expect(await after(TIMES.storeTimeoutMs)).toMatchObject({ isIdle: true, told: [FAILED] })
})

test('where a transaction holds the key, the client is not kept waiting for its end', async () => {
  const after = await answeredBy(201, HELD, HELD, silence, { ok: true })
  expect(await after(0)).toEqual({ sent: 'transaction_missing', isIdle: false, told: [] })
  expect(await after(2 * TIMES.storeTimeoutMs)).toMatchObject({ isIdle: true, told: [FAILED] })
})
