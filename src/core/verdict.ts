import { asReplay } from './answer.js'
import type { Decision } from './decision.js'
import type { Identity } from './identity.js'
import type { ResolvedOptions } from './options.js'
import { type ProblemCode, problemOf } from './problem.js'
import type { IdempotencyRecord } from './record.js'

type Options = Pick<ResolvedOptions<never>, 'unknownOutcome' | 'retryAfterMs' | 'problemStatuses'>
type Rejected = Extract<Decision, { action: 'reject' }>

/** What somebody is told who does not run. */
export type Verdict = Extract<Decision, { action: 'replay' }> | Rejected

/** What the record that stood in the way means for a request. */
export function verdictOn(record: IdempotencyRecord, { fingerprint }: Identity, options: Options): Verdict {
  const bound = record.state === 'failed' && !record.uncertain ? null : record.fingerprint
  if (bound !== null && bound !== fingerprint) return rejected('mismatched', options)
  switch (record.state) {
    case 'completed':
      return record.answer.body === null
        ? rejected('answer_not_kept', options)
        : { action: 'replay', answer: asReplay(record.answer) }
    case 'in-flight':
      return record.leaseRemainingMs > 0 || options.unknownOutcome === 'rerun'
        ? rejected('in_flight', options)
        : rejected('outcome_unknown', options)
    case 'failed':
      // A certain failure refuses only its own token: this claim was given up before its reply came.
      return record.uncertain ? rejected('outcome_unknown', options) : rejected('store_unavailable', options)
  }
}

/** What a run that lost its lease tells its client: the answer if there is one, else to come back. */
export function verdictAfterLoss(record: IdempotencyRecord | null, identity: Identity, options: Options): Verdict {
  return record?.state === 'completed' ? verdictOn(record, identity, options) : rejected('in_flight', options)
}

export function rejected(code: ProblemCode, options: Options, detail?: string): Rejected {
  return { action: 'reject', problem: problemOf(code, options, detail) }
}
