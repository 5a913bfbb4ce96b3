import type { ResolvedClientOptions } from './options.js'
import {
  computePauseMs,
  hasHappened,
  isCertainRefusal,
  isFinal,
  isReplayed,
  type Problem,
  type TryResult,
} from './reply.js'
import { type RepeatableRequest, runWithTimeLimit, tryOnce } from './request.js'

export type Outcome = Done | Refused | Unknown

/**
 * The operation has happened, once. The key is kept until `forget`: until then the same operation gets the same
 * response.
 */
export interface Done {
  readonly outcome: 'done'
  /** Its body was received completely. */
  readonly response: Response
  /** Whether an earlier try had done it, and this is its stored response (`Idempotent-Replayed`). */
  readonly replayed: boolean
  /** `answer_not_kept`: it has happened, but its response was too large to be stored. Read the result elsewhere. */
  readonly problem?: Problem | undefined
}

/**
 * The operation has not happened. The key is forgotten: a corrected request is a new operation, with the same name or
 * another. If another client over the same storage may use the key too, it stays there, and the corrected request has it.
 */
export interface Refused {
  readonly outcome: 'refused'
  readonly response: Response
  /** The problem in the response, if it is `application/problem+json`. */
  readonly problem?: Problem | undefined
}

/**
 * The operation may have happened: the tries or the time were used up, the caller aborted, the key has expired
 * (`problem.code`), another client that uses the key may have done it, or the response does not tell, such as a redirect. The key is
 * kept. To continue, call `send` with the same operation, or find
 * out the outcome; never start it with another name.
 */
export interface Unknown {
  readonly outcome: 'unknown'
  /** The last try's response, if it had one. */
  readonly response?: Response | undefined
  readonly problem?: Problem | undefined
  /** Why the last try had none: the error of `fetch`, a `TimeoutError`, or the reason of the caller's signal. */
  readonly cause?: unknown
}

/** What became of an operation; `undefined` is `unknown`. */
type CallEnd = { readonly outcome: Outcome['outcome']; readonly replayed?: boolean } | undefined

/** One operation under way, for all who have called for it meanwhile. */
export interface OperationInProgress {
  readonly request: Promise<RepeatableRequest>
  /** As its first caller gave it. */
  readonly body: RequestInit['body']
  /** Stops it: nobody waits any more. */
  readonly stop: AbortController
  /** How many callers wait for it. */
  waiting: number
  /** The result of the last try; empty while one is under way. */
  last: TryResult
  end?: Promise<CallEnd>
}

/** Tries one request with one key until the outcome is settled, the tries or the time are used up, or it is stopped. */
export async function runOperation(
  rules: ResolvedClientOptions,
  operation: string,
  request: RepeatableRequest,
  call: OperationInProgress,
  tries = 1,
): Promise<CallEnd> {
  const { keys } = rules
  const endsAt = Date.now() + rules.totalTimeoutMs
  const { signal } = call.stop
  const [key, madeAt, firstSent, isNew] = await keys.find(operation, signal)
  if (!key) throw new TypeError('A key is missing.')
  request.headers.set('Idempotency-Key', key)
  // OASIS Repeatable Requests 1.0: "the date and time at which the request was first created", as an HTTP date.
  if (firstSent) request.headers.set('Repeatability-First-Sent', new Date(firstSent).toUTCString())
  let mayHaveHappened = !isNew // A try with an unknown end may have been made before a reload.

  for (; !signal.aborted; tries++) {
    // NaN where the time is not known, so that the comparison is false.
    if (Date.now() - (madeAt as number) > rules.expiresAfterMs) {
      call.last = { problem: { code: 'key_expired' } }
      return
    }
    call.last = {}
    const last = await tryOnce(rules.fetch, request, rules.tryTimeoutMs, signal)
    call.last = last
    if (hasHappened(last)) return { outcome: 'done', replayed: isReplayed(last) }
    if (isFinal(last)) {
      const { response, problem } = last
      const code = problem?.code
      // `key_invalid` and `key_expired`: by the service's time, the first try was sent in the future, or too long ago.
      const isNews = /^key_/.test(`${code}`) && keys.learnTime(response)
      if (signal.aborted || !isCertainRefusal(last) || code === 'outcome_unknown') return
      // If an earlier try, or another client's, may have had its effect, only a refusal that also covers that try settles the operation.
      const isSettled = () => code !== 'key_expired' && rules.settles(response, problem) === true
      if (mayHaveHappened && !isSettled()) return
      if (!(await keys.end(operation, signal, key, isSettled))) return
      // A new key, by the service's time.
      if (isNews && tries < rules.maxTries) return runOperation(rules, operation, request, call, tries + 1)
      return { outcome: 'refused' }
    }
    mayHaveHappened ||= !isCertainRefusal(last) || last.response?.status === 409

    const waitMs = computePauseMs(last, tries)
    if (tries >= rules.maxTries || waitMs >= endsAt - Date.now()) return
    await runWithTimeLimit(waitMs, signal, () => new Promise(() => {}))
  }
  return
}
