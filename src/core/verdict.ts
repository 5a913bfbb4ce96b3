import type { ResolvedEngineOptions } from './engine-options.js'
import type { Identity } from './identity.js'
import type { RefusalCode, Refused, Replayed } from './outcome.js'
import type { IdempotencyRecord } from './record.js'
import { inFlightPauseMs } from './retry-after.js'

type Options = Pick<ResolvedEngineOptions, 'unknownOutcome' | 'retryAfterMs' | 'leaseMs' | 'storeTimeoutMs'>

/** The result for an operation that does not run. */
export type Verdict = Replayed | Refused

/** What the existing record means for an operation. */
export function verdictOn(record: IdempotencyRecord, { fingerprint }: Identity, options: Options): Verdict {
  const bound = record.state === 'failed' && !record.uncertain ? null : record.fingerprint
  if (bound !== null && bound !== fingerprint) return refused('mismatched')
  switch (record.state) {
    case 'completed':
      if (record.answer === null) return refused('mismatched') // The same fingerprint would get the answer.
      return record.answer.body === null ? refused('answer_not_kept') : { action: 'replay', answer: record.answer }
    case 'in-flight':
      return record.leaseRemainingMs > 0 || options.unknownOutcome === 'rerun'
        ? inFlight(record.leaseRemainingMs, options)
        : refused('outcome_unknown')
    case 'failed':
      // A certain failure refuses only its own token: this claim was given up before its reply came.
      return record.uncertain ? refused('outcome_unknown') : storeUnavailable(options)
  }
}

/** The result for the client of a run that lost its lease: the answer if there is one, else to retry. */
export function verdictAfterLoss(record: IdempotencyRecord | null, identity: Identity, options: Options): Verdict {
  if (record?.state === 'completed') return verdictOn(record, identity, options)
  return inFlight(record?.state === 'in-flight' ? record.leaseRemainingMs : 0, options)
}

/** Tells the client to retry; the pause depends on the rest of the owner's lease. */
export function inFlight(leaseRemainingMs: number, options: Options): Refused {
  return refused('in_flight', inFlightPauseMs(leaseRemainingMs, options))
}

/** The store gave no usable reply, and nothing was run. */
export function storeUnavailable({ retryAfterMs }: Pick<Options, 'retryAfterMs'>): Refused {
  return refused('store_unavailable', retryAfterMs)
}

/** Sent to the client instead of a success that could not be stored. */
export function unconfirmed(options: Pick<Options, 'retryAfterMs'>): Refused {
  return { ...storeUnavailable(options), mayHaveRun: true }
}

export function isInFlight(verdict: Verdict): boolean {
  return verdict.action === 'refuse' && verdict.code === 'in_flight'
}

function refused(code: RefusalCode, retryAfterMs: number | null = null): Refused {
  return { action: 'refuse', code, retryAfterMs, mayHaveRun: false }
}
