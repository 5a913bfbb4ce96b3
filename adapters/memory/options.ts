import { optionRules } from '../../src/core/index.js'

export interface MemoryStoreOptions {
  /**
   * The maximum size of claims and answers, in bytes: keys, headers and bodies, plus an estimate for the engine's own
   * structures. A claim beyond it is refused; the completion of an existing claim never is, so records in flight may
   * exceed it. Failures have their own budgets: uncertain ones `maxUncertainBytes`, certain ones an eighth of
   * `maxBytes`.
   * @default 134_217_728 (128 MiB)
   */
  readonly maxBytes?: number

  /** The maximum number of claims and answers. */
  readonly maxEntries?: number

  /**
   * The maximum size of uncertain failures, in bytes: some 500 each. None is dropped before it expires, since its retry
   * would run as if it were new. Any claim in flight may end as one, so a claim is refused if there is no room for it, or
   * if its scope holds more of this than its share.
   * @default half of maxBytes: a bank that is down fails a hundred payments a second, and must not take the room of
   * answers
   */
  readonly maxUncertainBytes?: number

  /**
   * The share of the store that one scope may use while no other scope uses any: above 0, at most 1. Otherwise it may
   * claim while it holds no more than is still free (for 0.5; in proportion for other values), so that a new scope
   * always finds room. An answer that would exceed the share is not kept, with an event.
   * @default 0.5: no scope can fill the store for the others. With `scope: singleTenant` the one scope has all of it
   */
  readonly maxScopeShare?: number

  /**
   * What happens when the store is full and nothing has expired. `'refuse'`: `begin` throws `store_full`, so the
   * request gets 503. `'evict'`: the oldest completed record is dropped, with an event, the claiming scope's own first;
   * a retry of a dropped record runs again.
   * @default 'refuse': a record that is dropped early is a payment made twice
   */
  readonly whenFull?: 'refuse' | 'evict'

  /**
   * The clock, in milliseconds. It must never go back.
   * @default performance.now(): a change of the wall clock ends no lease
   */
  readonly now?: () => number
}

const { aFunction, anInteger, oneOf } = optionRules
const someBytes = anInteger(1, Number.MAX_SAFE_INTEGER)

export const RULES = {
  maxBytes: someBytes,
  maxEntries: anInteger(1, Number.MAX_SAFE_INTEGER),
  maxUncertainBytes: someBytes,
  maxScopeShare: (value: unknown) =>
    typeof value === 'number' && value > 0 && value <= 1 ? null : 'a number above 0, and at most 1',
  whenFull: oneOf('refuse', 'evict'),
  now: aFunction,
}
