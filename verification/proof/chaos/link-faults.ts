import type { FaultProxy } from '../../../test/support/fault-proxy.js'
import type { Choices } from './choices.js'
import { type Fault, type FaultLane, pause } from './faults.js'

/** Stands in each completion, and in nothing else that a service sends to Redis: the content type of what is stored. */
const IN_A_COMPLETION = 'application/json; charset'
/** Stands in each transaction of the books that writes. */
const IN_A_COMMIT = 'keptUntil'
const ARMED_MS = 1_000

/** What goes wrong between one service and its Redis; `policy` stands in each claim, and in nothing else. */
export function linkFaults(links: readonly FaultProxy[], policy: string): readonly FaultLane[] {
  const on = (name: string, strike: (link: FaultProxy, choices: Choices) => Promise<unknown>): Fault => ({
    name,
    strike: (choices) => strike(choices.one(links), choices),
  })

  /** Loses it on whichever link it comes by first; `false`: there was nothing to lose. */
  function losing(name: string, arm: (link: FaultProxy) => Promise<void>): Fault {
    return {
      name,
      async strike() {
        const lost = Promise.race(links.map(arm)).then(() => true)
        const happened = await Promise.race([lost, pause(ARMED_MS).then(() => false)])
        for (const link of links) link.disarm()
        return happened
      },
    }
  }

  const network: FaultLane = {
    name: 'network',
    leastPauseMs: 100,
    mostPauseMs: 300,
    faults: [
      on('cuts', (link, choices) => until(link, () => link.cut(), choices.between(200, 700))),
      on('half-open connections', (link, choices) => until(link, () => link.freeze(), choices.between(500, 900))),
      on('resets', async (link) => link.reset()),
      on('slow links', async (link, choices) => {
        link.delay(choices.between(20, 250))
        await pause(choices.between(200, 600))
        link.delay(0)
      }),
    ],
  }
  const losses: FaultLane = {
    name: 'losses',
    leastPauseMs: 150,
    mostPauseMs: 350,
    faults: [
      losing('lost replies', (link) => link.dropReplyTo(policy)),
      losing('lost replies', (link) => link.dropReplyTo(IN_A_COMPLETION)),
      losing('lost replies', (link) => link.dropReplyTo(IN_A_COMMIT)),
      losing('lost requests', (link) => link.dropRequest(IN_A_COMPLETION)),
      losing('lost requests', (link) => link.tearRequest(IN_A_COMPLETION)),
    ],
  }
  return [network, losses]
}

async function until(link: FaultProxy, begin: () => void, ms: number): Promise<void> {
  begin()
  await pause(ms)
  link.heal()
}
