import type { ResolvedEngineOptions } from './engine-options.js'

type Terms = Pick<ResolvedEngineOptions, 'leaseMs' | 'storeTimeoutMs' | 'retryAfterMs'>

/** The longest pause while the owner renews: a client that has retried for so long would rather ask again. */
const LONGEST_MS = 8_000

/** Of the time to the next renewal: a duplicate that comes so soon behind its owner is one of a race, and most races are short. */
const RACE = 0.05

/**
 * How long whoever met a record in flight should wait, in milliseconds.
 *
 * An owner renews its lease at every third of it, so the part that has passed tells two things. Up to a third: the owner
 * lives, and has run for at least so long. It may need several times as long, and a client may have one or two retries left,
 * so the pause grows from `retryAfterMs` on, fast at first. Beyond a third, with a time limit's room for the reply: it has
 * missed a renewal, and nothing will change before its lease is over.
 */
export function inFlightPauseMs(leaseRemainingMs: number, { leaseMs, storeTimeoutMs, retryAfterMs }: Terms): number {
  const shortestMs = Math.max(1, Math.ceil(retryAfterMs / 1_000)) * 1_000
  if (leaseRemainingMs <= 0) return shortestMs
  const renewalMs = leaseMs / 3
  const passedMs = leaseMs - leaseRemainingMs
  if (passedMs > renewalMs + storeTimeoutMs) return leaseRemainingMs
  const growthMs = Math.max(0, LONGEST_MS - shortestMs) * Math.cbrt(partPassed(passedMs, renewalMs, storeTimeoutMs))
  const pauseMs = shortestMs + Math.floor(growthMs / 1_000) * 1_000
  return Math.min(pauseMs, Math.max(shortestMs, leaseRemainingMs))
}

/** Of the time to the next renewal, from 0 to 1. */
function partPassed(passedMs: number, renewalMs: number, storeTimeoutMs: number): number {
  // Longer than a lease of ours: its owner has other options, and how much has passed is not known.
  if (passedMs < -storeTimeoutMs) return 1
  const part = passedMs / renewalMs
  return part < RACE ? 0 : Math.min(1, part)
}
