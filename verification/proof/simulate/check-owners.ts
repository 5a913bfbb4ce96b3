import type { Evidence } from './evidence.js'
import type { Request } from './history.js'
import type { Attempt } from './ledger.js'

/** For timers that count whole milliseconds. */
const SLACK_MS = 5

/**
 * S1 and S3, where a lease has lapsed: not because its owner, which could have, did not renew it while its handler ran,
 * or while the completion of a success that its client saw was pending.
 */
export function checkLapsed(evidence: Evidence, owner: Request, at: number): void {
  const { setting, expect, attemptOf, instanceOf } = evidence
  const { run } = owner
  const attempt = attemptOf(owner)
  if (run === null || attempt.claimSentAt === null || attempt.lastSentAt === null) return
  // A run that gave its lease up as taken renews nothing, though a late duplicate may claim in its name.
  if (run.attempt === 0 || attempt.isDuplicated) return
  const { isCrashed, lastStalledAt } = instanceOf(owner.instance)
  if (isCrashed || lastStalledAt >= attempt.claimSentAt) return

  const { leaseMs, maxRunMs } = setting.options
  const isRenewed = at - attempt.lastSentAt <= leaseMs / 3 + SLACK_MS || isOut(evidence, attempt, at)
  const timeIsOverAt = attempt.claimSentAt + maxRunMs
  if (run.end === null) {
    if (at < timeIsOverAt) expect('S1', isRenewed, owner, 'the lease of a run that goes on is not renewed')
  } else if (attempt.isPending && !attempt.isConfirmed && run.end.succeeded && at < timeIsOverAt) {
    expect('S3', isRenewed, owner, 'the completion of a success that was sent is not tried again')
  }
}

/**
 * A renewal has one copy at a time. Where nothing is heard of it, the next follows a third of a lease after the store has
 * answered what the same instance asked a time limit later.
 */
function isOut({ setting, instanceOf }: Evidence, { request, unansweredRenewal }: Attempt, at: number): boolean {
  if (unansweredRenewal === null) return false
  const { leaseMs, storeTimeoutMs } = setting.options
  const lostFrom = unansweredRenewal.sentAt + storeTimeoutMs
  const later = instanceOf(request.instance).heard.find(({ sentAt }) => sentAt > lostFrom)
  return later === undefined || at - later.at <= leaseMs / 3 + SLACK_MS
}
