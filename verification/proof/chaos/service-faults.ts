import { type Ask, type Payment, SCOPES } from './asking.js'
import type { Choices } from './choices.js'
import { isFinal } from './clients.js'
import { type FaultLane, pause } from './faults.js'
import type { Fleet } from './fleet.js'
import { instant } from './journal.js'
import type { Calm } from './one-fault-at-a-time.js'

/** For a handler that is stopped in its midst. */
const HANDLER_MS = 400
const RIVALS = 3
/** Until what has begun is over. */
const UNDER_WAY_MS = 600

/** Services die, and stall: past their leases, so that others take over. */
export function serviceFaults(name: string, fleet: Fleet, ask: Ask, leaseMs: number, calm: Calm): readonly FaultLane[] {
  const anyService = (choices: Choices) => choices.between(0, fleet.size - 1)
  let stalls = 0

  /** A claim that another fault has foiled is tried again while there is time. */
  async function holdOn(payment: Payment, service: number): Promise<void> {
    const until = instant() + HANDLER_MS / 2
    do {
      if (isFinal(await ask(payment, service, { delayMs: HANDLER_MS }))) return
      await pause(25)
    } while (instant() < until)
  }

  /** Payments whose owner stalls, and whose clients ask elsewhere meanwhile; `false`: it is being started again. */
  async function stall(choices: Choices): Promise<boolean> {
    const service = anyService(choices)
    const ms = leaseMs + choices.between(400, 900)
    const key = `${name}-stall-${stalls++}`
    const rivals = Array.from({ length: RIVALS }, (_, i) =>
      SCOPES.map(async (scope) => {
        const payment = { scope, key: `${key}-${i}`, reference: `${key}-${i}`, amount: 2_000 }
        const first = holdOn(payment, service)
        await pause(leaseMs)
        for (let tries = 0; tries < 10; tries++) {
          const elsewhere = (service + 1 + (tries % (fleet.size - 1))) % fleet.size
          if (isFinal(await ask(payment, elsewhere))) break
          await pause(50)
        }
        await first
      }),
    )
    await pause(HANDLER_MS * 0.75)
    const stopped = await fleet.stop(service, ms)
    await Promise.all(rivals.flat())
    return stopped
  }

  /** The first of three is alone, so that nothing but the stall decides who owns a key. */
  function stallInTurn(choices: Choices): Promise<boolean> {
    if (stalls % 3 > 0) return stall(choices)
    return calm.during(() => pause(UNDER_WAY_MS).then(() => stall(choices)))
  }

  return [
    {
      name: 'deaths',
      leastPauseMs: 800,
      mostPauseMs: 1_800,
      faults: [{ name: 'kills', strike: (choices) => fleet.kill(anyService(choices)) }],
    },
    {
      name: 'stalls',
      leastPauseMs: 100,
      mostPauseMs: 500,
      faults: [{ name: 'stops past the lease', strike: stallInTurn }],
    },
  ]
}
