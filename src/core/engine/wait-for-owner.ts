import { getMonotonicMs } from '../calls/timers.js'
import {
  createInFlightRefusal,
  createUnavailableRefusal,
  explainNotRun,
  isInFlight,
  type NotRun,
} from '../events/refusal.js'
import type { ResolvedEngineOptions } from '../options/engine-options.js'
import type { Acquired, IdempotencyRecord } from '../record/record.js'
import type { Duplicates, DuplicateWaiter } from '../run/duplicates.js'
import type { Run } from '../run/run.js'
import type { Claims } from './claims.js'

export type WaitResult =
  /** The key became free, and the duplicate acquired it. */
  | { readonly kind: 'acquired'; readonly reply: Acquired; readonly sentAt: number }
  /** The record prevents it: the record as last seen, or `null` if a run of this engine holds the key. */
  | { readonly kind: 'told'; readonly notRun: NotRun; readonly record: IdempotencyRecord | null }
  /** Its claim was given up: the store failed, or its client has gone. */
  | { readonly kind: 'given up'; readonly notRun: NotRun }

interface Duplicate {
  readonly operation: Run
  readonly isAbandoned: () => boolean
  /**
   * The record in flight, as the store has just shown it; `null`: a run of this engine holds the key, so the store was
   * not asked.
   */
  readonly record: IdempotencyRecord | null
  readonly since: number
}

/**
 * Waits for the owner's answer for up to `inFlightWaitMs`: for a run of this engine until it ends, for another process
 * by polling the store, always with the same token. `finish` is called before the next in line continues, so that it
 * finds the run if the key was acquired.
 */
export async function waitForOwner<Result>(
  duplicate: Duplicate,
  duplicates: Duplicates,
  claims: Claims,
  options: ResolvedEngineOptions,
  finish: (waited: WaitResult) => Result,
): Promise<Result> {
  const { record } = duplicate
  const { recordKey, fingerprint, identity } = duplicate.operation
  const place = duplicates.join(recordKey, fingerprint, identity.scope)
  if (place === null) {
    const notRun =
      record === null ? createInFlightRefusal(options.leaseMs, options) : explainNotRun(record, identity, options)
    return finish({ kind: 'told', notRun, record })
  }
  try {
    return finish(await waitForOutcome(duplicate, place, claims, options))
  } finally {
    duplicates.part(recordKey, identity.scope, place)
  }
}

async function waitForOutcome(
  { operation, isAbandoned, record: firstSeen, since }: Duplicate,
  place: DuplicateWaiter,
  claims: Claims,
  options: ResolvedEngineOptions,
): Promise<WaitResult> {
  const { identity } = operation
  const { leaseMs, inFlightWaitMs } = options
  let record = firstSeen
  while (true) {
    if (place.record !== undefined) return toWaitResult(place.record)
    const waitedMs = getMonotonicMs() - since
    const asks = place.asks
    if (waitedMs >= inFlightWaitMs || isAbandoned()) {
      if (asks && record !== null) return toWaitResult(record)
      // The lease is being renewed: all that is known is how long the run has lasted. One that has claimed nothing has none.
      const isLeased = !claims.areLooks || record !== null
      const remainingMs = isLeased ? leaseMs - Math.min(waitedMs, leaseMs / 3) : 0
      return { kind: 'told', notRun: createInFlightRefusal(remainingMs, options), record }
    }

    await place.turn(inFlightWaitMs - waitedMs)
    if (!asks || !place.asks || place.record !== undefined || isAbandoned()) continue
    const claim = claims.send(operation, getMonotonicMs())
    await claim?.waitForReply()
    const reply = claim && claims.replyTo(claim)
    if (claim === null || reply === null) {
      claims.giveUp(operation, claim)
      return { kind: 'given up', notRun: createUnavailableRefusal(options) }
    }
    if (reply.acquired) {
      if (!isAbandoned()) return { kind: 'acquired', reply, sentAt: claim.sentAt }
      claims.giveUp(operation, claim)
      return { kind: 'given up', notRun: createInFlightRefusal(leaseMs, options) }
    }
    record = reply.record
    if (isInFlight(explainNotRun(record, identity, options))) continue
    // The others only receive final states that were shown in full.
    const isFinal = record.state === 'completed' || (record.state === 'failed' && record.uncertain)
    if (isFinal && record.fingerprint === identity.fingerprint) place.line.tell(record)
    return toWaitResult(record)
  }

  function toWaitResult(record: IdempotencyRecord): WaitResult {
    return { kind: 'told', notRun: explainNotRun(record, identity, options), record }
  }
}
