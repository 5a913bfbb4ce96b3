import type { Refused, Replayed } from '../../core/events/refusal.js'
import type { Answer } from '../../core/record/record.js'
import { asReplay } from '../answer/answer.js'
import { MAY_HAVE_RUN, problemOf } from '../answer/problem.js'
import type { ResolvedOptions } from '../options/options.js'
import type { Problem, ProblemCode } from '../options/problem.js'
import type { OptionFunctions } from './option-functions.js'
import type { Rejected, Replay } from './request-run.js'

/** Translates the core's results into HTTP, by the options. */
export class RequestRules<Req> {
  readonly options: ResolvedOptions<Req>
  readonly functions: OptionFunctions<Req>

  constructor(options: ResolvedOptions<Req>, functions: OptionFunctions<Req>) {
    this.options = options
    this.functions = functions
  }

  /** An answer from a record becomes a replay, and a refusal a problem; anything else is returned unchanged. */
  inHttp<Other extends { readonly action: string }>(
    outcome: Other | Replayed | Refused,
  ): Exclude<Other, Replayed | Refused> | Replay | Rejected {
    switch (outcome.action) {
      case 'replay':
        return { action: 'replay', answer: answerIn(outcome as Replayed) }
      case 'refuse': {
        const { code, retryAfterMs, mayHaveRun } = outcome as Refused
        return this.reject(code, mayHaveRun && code === 'store_unavailable' ? MAY_HAVE_RUN : undefined, retryAfterMs)
      }
      default:
        return outcome as Exclude<Other, Replayed | Refused>
    }
  }

  reject(code: ProblemCode, detail?: string, retryAfterMs?: number | null): Rejected {
    const { problemStatuses } = this.options
    const terms = { problemStatuses, retryAfterMs: retryAfterMs ?? this.options.retryAfterMs }
    return { action: 'reject', problem: this.#published(problemOf(code, terms, detail)) }
  }

  /** An expired key's client learns for how long others are kept. */
  #published(given: Problem): Problem {
    const { retentionMs, unknownRetentionMs, documentation } = this.options
    const problem = documentation === undefined ? given : { ...given, type: documentation, documentation }
    return problem.code !== 'key_expired'
      ? problem
      : { ...problem, retentionSeconds: Math.floor(Math.min(retentionMs, unknownRetentionMs) / 1_000) }
  }
}

/** Marked as a replay, unless it is the run's own answer. */
function answerIn({ answer, isOwn }: Replayed): Answer {
  return isOwn ? answer : asReplay(answer)
}
