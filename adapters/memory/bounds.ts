import { SINGLE_TENANT } from '../../src/core/index.js'
import type { Holding } from './share.js'

export interface Limits {
  readonly maxBytes: number
  readonly maxEntries: number
  readonly maxScopeShare: number
}

/**
 * How scopes share a room. A scope may grow while what it holds is at most `maxScopeShare : 1 - maxScopeShare` of what
 * is free: by default, no more than is free. So a single scope gets half, n greedy ones get 1/(n + 1) each, and as much
 * is always left for a new one.
 */
export class Bounds {
  readonly #limits: Limits

  constructor(limits: Limits) {
    this.#limits = limits
  }

  /** Whether there is room for one more record. */
  fits(total: Holding, bytes: number): boolean {
    return total.count < this.#limits.maxEntries && total.bytes + bytes <= this.#limits.maxBytes
  }

  /** Whether a scope that holds this much stays within its share. */
  isFair(scope: string, own: Holding, total: Holding): boolean {
    const { maxBytes, maxEntries, maxScopeShare } = this.#limits
    if (scope === SINGLE_TENANT || maxScopeShare === 1) return true
    const keepsTo = (held: number, free: number) => held * (1 - maxScopeShare) <= free * maxScopeShare
    return keepsTo(own.bytes, maxBytes - total.bytes) && keepsTo(own.count, maxEntries - total.count)
  }
}
