import { inLanes } from '../lanes.js'
import { beatsIn } from '../limits/pulse.js'
import type { Ask, Asked, Payment } from './asking.js'
import { isFinal } from './clients.js'
import { pause } from './faults.js'
import type { Fleet } from './fleet.js'

const AT_ONCE = 16
const POLL_MS = 100
/** So often a store may be late: on a busy machine it is, and says nothing of the key. */
const MOST_WITHOUT_STORE = 100
/** One is a violation; more of them only take time. */
const MOST_LATE = 5

/**
 * Asks for each payment once more, now that the faults have stopped, until its answer is final. Resolves to the requests that were
 * sent when each service had had so much time and still got none, or no answer at all.
 */
export async function lastLook(
  payments: readonly Payment[],
  ask: Ask,
  fleet: Fleet,
  resolvesWithinMs: number,
): Promise<Asked[]> {
  const services = Array.from({ length: fleet.size }, (_, service) => service)
  const limits = services.map((service) => fleet.pulse(service).beats + beatsIn(resolvesWithinMs))
  const isOver = () => services.every((service) => fleet.pulse(service).beats > (limits[service] as number))
  const lates: Asked[] = []

  async function look(payment: Payment, service: number): Promise<void> {
    let withoutStore = 0
    while (lates.length < MOST_LATE) {
      const isLast = isOver()
      const asked = await ask(payment, service)
      if (isFinal(asked)) return
      const isInFlight = asked.reply?.code === 'in_flight'
      if (!isInFlight) withoutStore++
      const isLate = (isInFlight && isLast) || withoutStore > MOST_WITHOUT_STORE
      if (isLate || asked.end === 'unanswered') return void lates.push(asked)
      await pause(POLL_MS)
    }
  }

  await inLanes(
    AT_ONCE,
    payments.map((payment, i) => () => look(payment, i % fleet.size)),
  )
  return lates
}
