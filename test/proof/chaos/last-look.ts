import { inLanes } from '../lanes.js'
import type { Ask, Asked, Payment } from './asking.js'
import { isFinal } from './clients.js'
import { pause } from './faults.js'
import { instant } from './journal.js'

const AT_ONCE = 16
const POLL_MS = 100

/** An end that the store has not confirmed is sent again after pauses that grow to this. */
const LONGEST_PAUSE_MS = 5_000

/** A request that got no final answer although it was sent late. */
export interface Late {
  readonly asked: Asked
  /** Whether the longest pause was over, too. */
  readonly isBeyondPauses: boolean
}

/**
 * Asks for each payment once more, now that the faults have stopped, until its answer is final. Resolves to the requests
 * that were sent after `resolvesWithinMs` and still got none, or no answer at all.
 */
export async function lastLook(
  payments: readonly Payment[],
  ask: Ask,
  services: number,
  resolvesWithinMs: number,
): Promise<Late[]> {
  const deadline = instant() + resolvesWithinMs
  const lates: Late[] = []

  async function look(payment: Payment, service: number): Promise<void> {
    while (true) {
      const asked = await ask(payment, service)
      if (isFinal(asked)) return
      const isBeyondPauses = asked.sentAt > deadline + LONGEST_PAUSE_MS || asked.end === 'unanswered'
      if (asked.sentAt > deadline || isBeyondPauses) lates.push({ asked, isBeyondPauses })
      if (isBeyondPauses) return
      await pause(POLL_MS)
    }
  }

  await inLanes(
    AT_ONCE,
    payments.map((payment, i) => () => look(payment, i % services)),
  )
  return lates
}
