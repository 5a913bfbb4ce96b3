import { forgetKey, keyOf } from './keys.js'
import type { Rules } from './options.js'
import type { Outcome } from './outcome.js'
import { hasHappened, isCertainRefusal, isFinal, pauseMs, type Reply } from './reply.js'
import { type RepeatableRequest, tryOnce } from './request.js'
import { within } from './within.js'

/** What became of an operation; `undefined` is `unknown`. */
export type Verdict = { readonly outcome: Outcome['outcome']; readonly replayed?: boolean } | undefined

/** One operation under way, for all who have called for it meanwhile. */
export interface Call {
  readonly request: Promise<RepeatableRequest>
  /** As its first caller gave it. */
  readonly body: RequestInit['body']
  /** Stops it: nobody waits any more. */
  readonly stop: AbortController
  /** How many callers wait for it. */
  waiting: number
  /** The result of the last try; empty while one is under way. */
  last: Reply
  end?: Promise<Verdict>
}

/** Tries one request with one key until the outcome is settled, the tries or the time are used up, or it is stopped. */
export async function carryOut(
  rules: Rules,
  operation: string,
  request: RepeatableRequest,
  call: Call,
): Promise<Verdict> {
  const endsAt = performance.now() + rules.totalTimeoutMs
  const { signal } = call.stop
  const { key, isNew } = await keyOf(rules.keys, operation, signal)
  if (!key) throw new TypeError('The key is empty.')
  request.headers.set('Idempotency-Key', key)
  let mayHaveHappened = !isNew // A try with an unknown end may have been made before a reload.

  for (let tries = 1; !signal.aborted; tries++) {
    call.last = {}
    const last = await tryOnce(rules.fetch, request, rules.tryTimeoutMs, signal)
    call.last = last
    if (hasHappened(last)) {
      return { outcome: 'done', replayed: last.response.headers.get('Idempotent-Replayed') === 'true' }
    }
    if (isFinal(last)) {
      const { response, problem } = last
      // If an earlier try may have had its effect, only a refusal that also covers that try settles the operation.
      const speaksForAll = !mayHaveHappened || rules.settles(response, problem)
      if (signal.aborted || !isCertainRefusal(last) || problem?.code === 'outcome_unknown' || !speaksForAll) return
      await forgetKey(rules.keys, operation)
      return { outcome: 'refused' }
    }
    mayHaveHappened ||= !isCertainRefusal(last) || last.response?.status === 409

    const waitMs = pauseMs(last, tries)
    if (tries >= rules.maxTries || waitMs >= endsAt - performance.now()) return
    await within(waitMs, signal, () => new Promise(() => {}))
  }
  return
}
