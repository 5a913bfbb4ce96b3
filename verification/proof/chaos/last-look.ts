import { inLanes } from '../lanes.js'
import type { Ask, Asked, Payment } from './asking.js'
import { isFinal } from './clients.js'
import { pause } from './faults.js'
import { instant } from './journal.js'

const AT_ONCE = 16
const POLL_MS = 100

/**
 * Asks for each payment once more, now that the faults have stopped, until its answer is final. Resolves to the requests
 * that were sent after `resolvesWithinMs` and still got none, or no answer at all.
 */
export async function lastLook(
  payments: readonly Payment[],
  ask: Ask,
  services: number,
  resolvesWithinMs: number,
): Promise<Asked[]> {
  const deadline = instant() + resolvesWithinMs
  const lates: Asked[] = []

  async function look(payment: Payment, service: number): Promise<void> {
    while (true) {
      const asked = await ask(payment, service)
      if (isFinal(asked)) return
      if (asked.sentAt > deadline || asked.end === 'unanswered') return void lates.push(asked)
      await pause(POLL_MS)
    }
  }

  await inLanes(
    AT_ONCE,
    payments.map((payment, i) => () => look(payment, i % services)),
  )
  return lates
}
