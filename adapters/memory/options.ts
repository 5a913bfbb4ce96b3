import { type OptionRule, optionRules, resolveOptions } from '../../src/core/index.js'

export interface MemoryStoreOptions {
  /**
   * The maximum size of claims and answers. A claim beyond it is refused; a completion never is. Failures have budgets
   * of their own: uncertain ones `maxUncertainBytes`, certain ones an eighth of `maxBytes`.
   * @default 134_217_728 (128 MiB)
   */
  readonly maxBytes?: number | undefined

  /** The maximum number of claims and answers. */
  readonly maxEntries?: number | undefined

  /**
   * The maximum size of uncertain failures, some 500 bytes each. They are kept until they expire, since without one a
   * retry would run as new. A claim that might find no room for one, or none in its scope's share, is refused.
   * @default half of maxBytes: a bank that is down must not take the room of answers
   */
  readonly maxUncertainBytes?: number | undefined

  /**
   * The share of the store, above 0 and at most 1, that one scope may use while no other uses any. Otherwise it may
   * claim while it holds no more than is still free. An answer beyond the share is not kept, with an event.
   * @default 0.5: no scope can fill the store for the others. With `scope: singleTenant`, 1
   */
  readonly maxScopeShare?: number | undefined

  /**
   * What happens when the store is full and nothing has expired. `'refuse'`: the request gets 503. `'evict'`: the
   * oldest completed record is dropped, the claiming scope's own first, with an event; its retry runs again.
   * @default 'refuse': a record that is dropped early is a payment made twice
   */
  readonly whenFull?: 'refuse' | 'evict' | undefined

  /**
   * The clock. It must never go back.
   * @default performance.now(): a change of the wall clock ends no lease
   */
  readonly now?: (() => number) | undefined
}

const { aFunction, anInteger, oneOf } = optionRules
const aSize = anInteger(1, Number.MAX_SAFE_INTEGER)

const findShareFault: OptionRule = (value) =>
  typeof value === 'number' && value > 0 && value <= 1 ? null : 'a number above 0, and at most 1'

/** @throws IdempotencyError `options_invalid`, which lists every mistake. */
export function readOptions(options: MemoryStoreOptions) {
  return resolveOptions<MemoryStoreSettings>('MemoryStore', options, OPTIONS)
}

type MemoryStoreSettings = {
  readonly [Name in Exclude<keyof MemoryStoreOptions, 'maxUncertainBytes'>]-?: NonNullable<MemoryStoreOptions[Name]>
} & Pick<MemoryStoreOptions, 'maxUncertainBytes'>

const OPTIONS = {
  maxBytes: { rule: aSize, default: 128 * 2 ** 20 },
  maxEntries: { rule: aSize, default: 1_000_000 },
  maxUncertainBytes: aSize,
  maxScopeShare: { rule: findShareFault, default: 0.5 },
  whenFull: { rule: oneOf('refuse', 'evict'), default: 'refuse' },
  now: { rule: aFunction, default: () => performance.now() },
}
