import type { Fleet } from './fleet.js'
import { isEnd, type KeyHistory } from './history.js'
import type { Late } from './last-look.js'
import { storeTimeoutOf } from './service-settings.js'
import type { Verdicts } from './verdicts.js'

/** The books' own patience. */
const BOOKS_MS = 2_000
/** A busy machine must not look like a late answer. */
const SLACK_MS = 2_500

/** Checks that everybody is answered: L1, L2, and of S10 that a store that fails is told of in time. */
export function checkLiveness(
  history: KeyHistory,
  lates: readonly Late[],
  fleet: Fleet,
  leaseMs: number,
  verdicts: Verdicts,
): void {
  // Its owner lives, and renews its lease until its end is confirmed.
  const hasPendingEnd = history.commands.some((command) => isEnd(command) && command.reply === null)
  const late = lates.find(({ asked: { payment }, isBeyondPauses }) => {
    return payment.scope === history.scope && payment.key === history.key && (isBeyondPauses || !hasPendingEnd)
  })
  if (history.asked.length > 0) {
    verdicts.expect('L1', history, late === undefined, () => {
      return `The faults had stopped, and still there was no final answer: ${late?.asked.reply?.code ?? late?.asked.end}`
    })
  }
  for (const asked of history.asked) {
    const { end, place, sentAt, endedAt, delayMs, reply } = asked
    const isExcused = end === 'aborted' || (end === 'closed' && fleet.hasDied(place))
    verdicts.expect('L2', history, end === 'replied' || isExcused, () => `A request was not answered: ${end}`)
    if (reply?.code !== 'store_unavailable' || fleet.wasStopped(place.service, sentAt, endedAt)) continue
    const longestMs = delayMs + BOOKS_MS + 2 * storeTimeoutOf(leaseMs) + SLACK_MS
    verdicts.expect('S10', history, endedAt - sentAt <= longestMs, () => {
      return `The store failed, and the client heard of it after ${(endedAt - sentAt).toFixed(0)} ms`
    })
  }
}
