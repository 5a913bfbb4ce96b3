import type { ResolvedEngineOptions } from './engine-options.js'
import type { Identity } from './identity.js'
import type { RefusalCode, Refused, Replayed } from './outcome.js'
import type { IdempotencyRecord } from './record.js'
import { inFlightPauseMs } from './retry-after.js'

type Options = Pick<ResolvedEngineOptions, 'unknownOutcome' | 'retryAfterMs' | 'leaseMs' | 'storeTimeoutMs'>

/** What somebody is told who does not run. */
export type Verdict = Replayed | Refused

/** What the record that stood in the way means for an operation. */
export function verdictOn(record: IdempotencyRecord, { fingerprint }: Identity, options: Options): Verdict {
  const bound = record.state === 'failed' && !record.uncertain ? null : record.fingerprint
  if (bound !== null && bound !== fingerprint) return refused('mismatched')
  switch (record.state) {
    case 'completed':
      if (record.answer === null) return refused('mismatched') // It is shown to its own fingerprint.
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

/** What a run that lost its lease tells its client: the answer if there is one, else to come back. */
export function verdictAfterLoss(record: IdempotencyRecord | null, identity: Identity, options: Options): Verdict {
  if (record?.state === 'completed') return verdictOn(record, identity, options)
  return inFlight(record?.state === 'in-flight' ? record.leaseRemainingMs : 0, options)
}

/** To come back when the owner may have ended: sooner or later by what its lease shows. */
export function inFlight(leaseRemainingMs: number, options: Options): Refused {
  return refused('in_flight', inFlightPauseMs(leaseRemainingMs, options))
}

/** The store has said nothing that counts, and nothing was run. */
export function storeUnavailable({ retryAfterMs }: Pick<Options, 'retryAfterMs'>): Refused {
  return refused('store_unavailable', retryAfterMs)
}

/** What the client of a success is told that could not be stored, and is not sent. */
export function unconfirmed(options: Pick<Options, 'retryAfterMs'>): Refused {
  return { ...storeUnavailable(options), mayHaveRun: true }
}

export function isInFlight(verdict: Verdict): boolean {
  return verdict.action === 'refuse' && verdict.code === 'in_flight'
}

function refused(code: RefusalCode, retryAfterMs: number | null = null): Refused {
  return { action: 'refuse', code, retryAfterMs, mayHaveRun: false }
}
