import { SINGLE_TENANT } from '../../src/core/index.js'
import type { Holding } from './share.js'

export interface Limits {
  readonly maxBytes: number
  readonly maxEntries: number
  readonly maxScopeShare: number
}

/**
 * How scopes share a room. One may grow while it holds no more than `maxScopeShare : 1 - maxScopeShare` of what is still
 * free: by default, no more than is free. So one alone has half, n greedy ones have an n + 1st each, and there is always
 * as much left for a newcomer.
 */
export class Bounds {
  readonly #limits: Limits

  constructor(limits: Limits) {
    this.#limits = limits
  }

  /** Whether there is room for one record more. */
  fits(total: Holding, bytes: number): boolean {
    return total.count < this.#limits.maxEntries && total.bytes + bytes <= this.#limits.maxBytes
  }

  /** Whether a scope that holds so much keeps to its share. */
  isFair(scope: string, own: Holding, total: Holding): boolean {
    const { maxBytes, maxEntries, maxScopeShare } = this.#limits
    if (scope === SINGLE_TENANT || maxScopeShare === 1) return true
    const keepsTo = (held: number, free: number) => held * (1 - maxScopeShare) <= free * maxScopeShare
    return keepsTo(own.bytes, maxBytes - total.bytes) && keepsTo(own.count, maxEntries - total.count)
  }
}
