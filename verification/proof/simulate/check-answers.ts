import type { Answer } from 'once-per-key/core'
import type { Evidence } from './evidence.js'
import type { Arrival, Request, Run, RunEnd } from './history.js'
import { textOf } from './story.js'

/** S2 and S3: a success is sent once it is stored, and no other has been seen. */
export function checkOwnSuccess(evidence: Evidence, request: Request, end: RunEnd): void {
  const { setting, tally, expect, ledgerOf, attemptOf } = evidence
  if (end.answer === null) return
  const attempt = attemptOf(request)
  const isCompleted = attempt.completedIn !== null
  // An unprotected run is outside of these laws.
  const isUnprotected = request.run?.attempt === 0
  const maySend = setting.options.unconfirmedSuccess === 'send' || isUnprotected
  expect('S3', isCompleted || (attempt.isPending && maySend), request, 'a success is sent that is not stored')
  if (isUnprotected) return
  const text = textOf(end.answer)
  const life = ledgerOf(request).life(attempt.completedIn ?? attempt.epoch)
  const isSeen = isCompleted ? life.seen : null
  const isOnly = (life.stored ?? text) === text && (isSeen ?? text) === text
  expect('S2', isOnly, request, 'a client sees another success than the one that is stored')
  if (isCompleted) life.seen = text
  else tally['pending completions']++
}

/** S2, S3, S8 and S9: a replay is the stored answer, which a run for the same request gave. */
export function checkReplay(evidence: Evidence, request: Request, answer: Answer, runs: readonly Run[]): void {
  const { tally, expect, ledgerOf, attemptOf } = evidence
  tally[request.run === null ? 'replays' : 'replays to a stalled run']++
  const text = textOf(answer)

  const run = runs[runOf(answer)]
  const isReal = run?.end?.answer != null && textOf(run.end.answer) === text && answer.body !== null
  expect('S8', isReal, request, 'an answer is replayed that no run gave')
  if (run !== undefined) {
    const { scope, key, content } = run.request
    expect(
      'S9',
      scope === request.scope && key === request.key,
      request,
      'the answer of another scope or key is replayed',
    )
    expect('S9', content === request.content, request, 'the answer to another body is replayed')
  }

  const { epoch } = attemptOf(request).told ?? shownMeanwhile(evidence, request) ?? {}
  expect('S3', epoch !== undefined, request, 'a replay is sent that no reply of the store showed')
  if (epoch === undefined) return
  const life = ledgerOf(request).life(epoch)
  expect('S3', life.stored === text, request, 'an answer is replayed that is not stored')
  expect('S2', life.seen === null || life.seen === text, request, 'a client sees another success than one before')
  life.seen = text
}

/** A duplicate that waits is told by the run that it waits for, or by another duplicate: of the same instance, in any case. */
function shownMeanwhile({ instanceOf }: Evidence, { instance, scope, key, askedAt }: Request): Arrival | undefined {
  const shown = instanceOf(instance).shown.get(`${scope} ${key}`)
  return shown !== undefined && shown.at >= askedAt ? shown.arrival : undefined
}

function runOf({ headers }: Answer): number {
  for (const [name, value] of headers) if (name === 'X-Run') return Number(value)
  return -1
}
