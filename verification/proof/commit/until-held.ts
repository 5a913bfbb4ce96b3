import { setTimeout as pause } from 'node:timers/promises'
import type { FaultProxy } from '../../../test/support/fault-proxy.js'

const MOST_ASKS = 400

/** No order came so far. */
export class NeverHeld extends Error {}

/**
 * Asks until a request with this text is held back on its way: on a busy machine an order may be refused before it comes that
 * far. `sendOn` lets it go; `answer` is what whoever asked gets.
 */
export async function untilHeld<Answer>(
  text: string,
  application: FaultProxy,
  ask: () => Promise<Answer>,
): Promise<{ readonly sendOn: () => void; readonly answer: Promise<Answer> }> {
  const held = application.hold(text)
  for (let asked = 0; asked < MOST_ASKS; asked++) {
    const answer = ask()
    const sendOn = await Promise.race([held, answer.then(() => null)])
    if (sendOn !== null) return { sendOn, answer }
    await pause(100)
  }
  application.disarm()
  throw new NeverHeld(`Of ${MOST_ASKS} orders, none came as far as ${text}.`)
}
