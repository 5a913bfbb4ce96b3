import { optionRules } from '../../src/core/index.js'

export interface MemoryStoreOptions {
  /**
   * How much claims and answers may take, in bytes: keys, headers and bodies, with an allowance for the engine's own
   * structures. A claim beyond it is refused; the completion of a claim that was made never is, so what is in flight may
   * exceed it. Failures are kept besides: those that may have had an effect in `maxUncertainBytes`, and those that certainly
   * had none in an eighth of `maxBytes`.
   * @default 134_217_728 (128 MiB)
   */
  readonly maxBytes?: number

  /**
   * How many claims and answers are kept.
   * @default 1_000_000
   */
  readonly maxEntries?: number

  /**
   * How much the failures may take that may have had an effect, in bytes: some 700 each. Beyond it their oldest is forgotten,
   * with an event: of the scope whose failure is the latest.
   * @default half of maxBytes: a bank that is down fails a hundred payments a second, and must not fill the store for a day
   */
  readonly maxUncertainBytes?: number

  /**
   * How much of the store a scope may hold while nobody else holds anything: above 0, at most 1. While others do, it may
   * claim as long as it holds no more than is still free (for 0.5; in proportion for others), so that a newcomer always
   * finds room; an answer that would pass its share is not kept, with an event.
   * @default 0.5: nobody can fill the store for the others. `scope: singleTenant` has all of it
   */
  readonly maxScopeShare?: number

  /**
   * What happens when it is full and nothing has expired. `'refuse'`: `begin` throws `store_full`, so a request gets 503.
   * `'evict'`: the completed record that was written the longest ago is dropped, with an event, the claiming scope's own
   * first; a retry of it runs again.
   * @default 'refuse': a record that is dropped early is a payment made twice
   */
  readonly whenFull?: 'refuse' | 'evict'

  /**
   * The clock, in milliseconds, never going back.
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
