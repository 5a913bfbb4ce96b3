import { type Claim, type Command, endSentAt, isEnd, type KeyHistory, ownerOf } from './history.js'
import type { Verdicts } from './verdicts.js'

/** Redis reads the time once for all that it does at once. */
const CLOCK_MARGIN_MS = 25

/** Checks who may own a key, and when: S1, S4, S6, and of S5 that fresh means fresh. */
export function checkClaims(history: KeyHistory, leaseMs: number, verdicts: Verdicts): void {
  for (const claim of history.claims) {
    for (const earlier of history.claims) {
      if (earlier.token === claim.token || earlier.repliedAt > claim.sentAt) continue
      checkExclusive(history, earlier, claim, leaseMs, verdicts)
      checkFresh(history, earlier, claim, verdicts)
      verdicts.expectIfKept('S6', history, claim.attempt > earlier.attempt, () => {
        return `Attempt ${claim.attempt} was claimed behind attempt ${earlier.attempt}`
      })
    }
    checkNothingCompleted(history, claim, verdicts)
  }
  checkFenced(history, verdicts)
  for (const { command, reply } of history.commands) {
    if (command === 'begin' && reply?.met === 'in-flight') verdicts.expectIfKept('S1', history, true, () => '')
  }
}

/** A lease that was confirmed lasts, from its reply until `leaseMs` after it was sent, unless its owner ended it. */
function checkExclusive(history: KeyHistory, owner: Claim, claim: Claim, leaseMs: number, verdicts: Verdicts): void {
  if (endSentAt(history, owner.token) < claim.repliedAt) return
  const leases = history.commands.filter((each) => each.token === owner.token && isConfirmed(each) && !isEnd(each))
  const live = leases.find(
    ({ sentAt, repliedAt }) => claim.sentAt >= repliedAt && claim.repliedAt < sentAt + leaseMs - CLOCK_MARGIN_MS,
  )
  verdicts.expectIfKept('S1', history, live === undefined, () => {
    const leftMs = (live?.sentAt ?? 0) + leaseMs - claim.repliedAt
    return `Attempt ${claim.attempt} was claimed while attempt ${owner.attempt} had ${leftMs.toFixed(0)} ms of its lease left`
  })
}

/** Who is told that nothing happened, or that all before failed without effect, is right. */
function checkFresh(history: KeyHistory, earlier: Claim, claim: Claim, verdicts: Verdicts): void {
  if (claim.previousOutcome === 'unknown') return
  const release = history.commands.find(
    ({ command, token, sentAt }) => command === 'release' && token === earlier.token && sentAt < claim.repliedAt,
  )
  const hadEffect = history.effects.some((effect) => ownerOf(history, effect)?.token === earlier.token)
  const isCertain = release !== undefined && !release.uncertain && earlier.previousOutcome !== 'unknown'
  verdicts.expectIfKept('S5', history, isCertain && !hadEffect, () => {
    const why = hadEffect ? 'had an effect' : release === undefined ? 'never failed' : 'left its outcome unknown'
    return `Attempt ${claim.attempt} was told "${claim.previousOutcome}", but attempt ${earlier.attempt} ${why}`
  })
}

function checkNothingCompleted(history: KeyHistory, claim: Claim, verdicts: Verdicts): void {
  const completion = history.commands.find(
    (each) => each.command === 'complete' && isConfirmed(each) && each.repliedAt <= claim.sentAt,
  )
  verdicts.expectIfKept('S4', history, completion === undefined, () => {
    return `Attempt ${claim.attempt} was claimed after a completion had been confirmed`
  })
}

/** Once another has claimed, nothing of an earlier owner succeeds. */
function checkFenced(history: KeyHistory, verdicts: Verdicts): void {
  for (const claim of history.claims) {
    for (const command of history.commands) {
      if (command.command === 'begin' || command.sentAt < claim.repliedAt) continue
      const owner = history.claims.find(({ token }) => token === command.token)
      if (owner === undefined || owner.token === claim.token || owner.attempt > claim.attempt) continue
      verdicts.expectIfKept('S6', history, !isConfirmed(command), () => {
        return `The ${command.command} of attempt ${owner.attempt} succeeded after attempt ${claim.attempt} had claimed`
      })
    }
  }
}

function isConfirmed({ reply }: Command): boolean {
  return reply?.outcome === 'ok' || reply?.outcome === 'acquired'
}
