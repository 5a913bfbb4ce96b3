import type { Answer } from '../../core/record/record.js'
import type { Problem } from '../options/problem.js'
import type { HeaderPairs } from '../request/facts.js'

/** Send the stored answer; the handler does not run. */
export interface Replay {
  readonly action: 'replay'
  readonly answer: Answer
  readonly extraHeaders?: HeaderPairs
}

/** Send the problem; the handler does not run. */
export interface Rejected {
  readonly action: 'reject'
  readonly problem: Problem
  readonly extraHeaders?: HeaderPairs
}

/** What to send after a run has ended: the handler's own response, another attempt's answer, or a problem. */
export type Settled = { readonly action: 'send' } | Replay | Rejected
