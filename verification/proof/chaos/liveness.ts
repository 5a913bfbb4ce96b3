import { BEAT_MS } from '../limits/pulse.js'
import type { Asked } from './asking.js'
import type { Fleet } from './fleet.js'
import type { KeyHistory } from './history.js'
import { storeTimeoutOf } from './service-settings.js'
import type { Verdicts } from './verdicts.js'

/** The books' own patience. */
const BOOKS_MS = 2_000
/** For what a service does besides: it counts its own beats, not those of a busy machine. */
const SLACK_MS = 2_500

/** Checks that everybody is answered: L1, L2, and of S10 that a store that fails is told of in time. */
export function checkLiveness(
  history: KeyHistory,
  lates: readonly Asked[],
  fleet: Fleet,
  leaseMs: number,
  verdicts: Verdicts,
): void {
  const late = lates.find(({ payment }) => payment.scope === history.scope && payment.key === history.key)
  if (history.asked.length > 0) {
    verdicts.expect('L1', history, late === undefined, () => {
      return `The faults had stopped, and still there was no final answer: ${late?.reply?.code ?? late?.end}`
    })
  }
  for (const asked of history.asked) {
    const { end, place, sentAt, endedAt, beats, delayMs, reply } = asked
    const isExcused = end === 'aborted' || (end === 'closed' && fleet.hasDied(place))
    verdicts.expect('L2', history, end === 'replied' || isExcused, () => `A request was not answered: ${end}`)
    if (reply?.code !== 'store_unavailable' || fleet.wasStopped(place.service, sentAt, endedAt)) continue
    const longestMs = delayMs + BOOKS_MS + 2 * storeTimeoutOf(leaseMs) + SLACK_MS
    verdicts.expect('S10', history, beats * BEAT_MS <= longestMs, () => {
      return `The store failed, and the client heard of it after ${beats} beats, and ${(endedAt - sentAt).toFixed(0)} ms`
    })
  }
}
