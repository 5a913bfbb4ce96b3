import type { Evidence } from './evidence.js'
import type { Run } from './history.js'

/** S5 and S10, where the handler starts: what it was told is right, and its claim was confirmed in time. */
export function checkStarted({ setting, tally, expect, attemptOf }: Evidence, run: Run, at: number): void {
  const { request } = run
  const attempt = attemptOf(request)
  if (attempt.begins > 1 && !attempt.isDuplicated) tally['duplicates that waited and became the owner']++
  if (setting.options.storeFailure === 'runUnprotected') return

  const { heard, asked } = request
  const isConfirmed = heard !== null && heard.command === asked && 'acquired' in heard.reply && heard.reply.acquired
  expect('S10', isConfirmed, request, 'the handler runs although no claim was confirmed')
  const isInTime = asked !== null && at < asked.sentAt + setting.options.leaseMs
  expect('S10', isInTime, request, 'the handler runs although its lease was over when the claim was confirmed')
  const isRight = run.previousOutcome === 'unknown' || attempt.mayBeFresh
  expect('S5', isRight, request, `a handler is told '${run.previousOutcome}', which is wrong`)
}

export function isCertainlyWithoutEffect({ end, steps }: Run): boolean {
  return end?.isCertain === true && steps.every(({ isTakenBack }) => isTakenBack)
}

/** S5: each effect but the first was preceded by a takeover. */
export function checkAffected({ setting, expect, ledgerOf, attemptOf }: Evidence, run: Run): void {
  if (setting.options.storeFailure === 'runUnprotected') return
  const { request } = run
  const life = ledgerOf(request).life(attemptOf(request).epoch)
  life.effects++
  expect('S5', life.effects <= 1 + life.takeovers, request, 'there are more effects than takeovers and one')
}
