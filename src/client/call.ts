import { forgetKey, keyOf } from './keys.js'
import type { Rules } from './options.js'
import type { Outcome } from './outcome.js'
import { hasHappened, isCertainRefusal, isFinal, pauseMs, type Reply } from './reply.js'
import { repeatable, tryOnce } from './request.js'
import { pause } from './within.js'

/** Tries one request with one key until the outcome is settled, or the tries or the time are used up. */
export async function carryOut(
  rules: Rules,
  operation: string,
  url: string | URL,
  init: RequestInit,
): Promise<Outcome> {
  const endsAt = performance.now() + rules.totalTimeoutMs
  const request = await repeatable(url, init)
  const { key, isNew } = await keyOf(rules.keys, operation)
  if (!key) throw new TypeError('A key must not be empty.')
  request.headers.set('Idempotency-Key', key)
  let mayHaveHappened = !isNew // A try with an unknown end may have been made before a reload.
  let last: Reply = {}

  for (let tries = 1; ; tries++) {
    if (init.signal?.aborted) return { outcome: 'unknown', ...last, cause: init.signal.reason }
    last = await tryOnce(rules.fetch, request, Math.min(rules.tryTimeoutMs, endsAt - performance.now()))
    if (hasHappened(last)) {
      return { outcome: 'done', ...last, replayed: last.response.headers.get('Idempotent-Replayed') === 'true' }
    }
    if (isFinal(last)) {
      const { response, problem } = last
      // If an earlier try may have had its effect, only a refusal that also covers that try settles the operation.
      const speaksForAll = !mayHaveHappened || rules.settles(response, problem)
      if (!isCertainRefusal(last) || problem?.code === 'outcome_unknown' || !speaksForAll)
        return { outcome: 'unknown', ...last }
      await forgetKey(rules.keys, operation)
      return { outcome: 'refused', ...last }
    }
    mayHaveHappened ||= !isCertainRefusal(last) || last.response?.status === 409

    const waitMs = pauseMs(last, tries)
    if (tries >= rules.maxTries || waitMs >= endsAt - performance.now()) return { outcome: 'unknown', ...last }
    await pause(waitMs, init.signal)
  }
}
