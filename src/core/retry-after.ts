import type { ResolvedEngineOptions } from './engine-options.js'

type Terms = Pick<ResolvedEngineOptions, 'leaseMs' | 'storeTimeoutMs' | 'retryAfterMs'>

/** The longest pause while the owner renews: a client that has waited this long should rather ask again. */
const LONGEST_MS = 8_000

/**
 * In parts of the time to the next renewal: a duplicate that follows its owner this soon is part of a race, and most
 * races are short.
 */
const RACE = 0.05

/**
 * How long a client should wait after it found a record in flight, in milliseconds.
 *
 * An owner renews its lease every third of it, so the part that has passed tells two things. Up to a third: the owner
 * lives, and has run for at least that long. It may need several times as long, and the client may have only one or two
 * retries left, so the pause grows from `retryAfterMs`, fast at first. Beyond a third (plus the time limit of a
 * command): the owner has missed a renewal, and nothing will change before its lease ends.
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

/** In parts of the time to the next renewal, from 0 to 1. */
function partPassed(passedMs: number, renewalMs: number, storeTimeoutMs: number): number {
  // Longer than our lease: its owner has other options, so how much has passed is unknown.
  if (passedMs < -storeTimeoutMs) return 1
  const part = passedMs / renewalMs
  return part < RACE ? 0 : Math.min(1, part)
}
