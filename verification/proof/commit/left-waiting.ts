import { setTimeout as pause } from 'node:timers/promises'
import type { FaultProxy } from '../../../test/support/fault-proxy.js'
import { IN_STATEMENT } from '../../../test/support/postgres-statements.js'
import type { Findings } from '../layer.js'
import { beatsIn } from '../limits/pulse.js'
import { sendAndWait, type Told, toldNothing } from './clients.js'
import { LEASE_MS, MISTAKES, type Order } from './order.js'
import { untilHeld } from './scenery.js'
import type { Services } from './services.js'

/** Several times as long as a statement may take, less than a connection may be silent, and a fraction of a patient run's time. */
const PATIENCE_BEATS = beatsIn(10 * LEASE_MS)
const MOST_ASKS = 100

const ORDER: Order = {
  reserves: false,
  calls: false,
  thinksMs: 0,
  pauseMs: 50,
  staysOpen: true,
  isolation: null,
  isSealed: false,
  way: 'plain',
  isPatient: true,
}

/** Requests whose text never reaches the database while their client waits. */
const SWALLOWED: Readonly<Record<string, readonly [text: string, order: Partial<Order>]>> = {
  'swallowed-completion': [IN_STATEMENT.completion, {}],
  'swallowed-mark': [IN_STATEMENT.mark, {}],
  'swallowed-effect': ['INSERT INTO effects', { isPatient: false }],
}
/** A step has called somebody, and its process dies before the database has the result: the next attempt calls again. */
const LOST_RESULT = 'lost-result'
/** The state of a step, in the JSON that records its result. */
const RESULT = '"done"'

/**
 * Orders one by one: a transaction of the handler's comes to nothing, or the database receives nothing. Whoever asks is answered
 * meanwhile, unless the process dies. Then the client asks until the order is carried out.
 */
export async function leaveWaiting(
  services: Services,
  { commands, application }: { readonly commands: FaultProxy; readonly application: FaultProxy },
  findings: Findings,
  seed: number,
): Promise<ReadonlyMap<string, Told>> {
  const told = new Map<string, Told>()

  async function ask(key: string, order: Order): Promise<string | null> {
    const of = told.get(key) ?? toldNothing()
    told.set(key, of)
    const id = await sendAndWait(services.port(0), key, order, PATIENCE_BEATS, services.pulse(0))
    findings.expect('L2', id !== 'aborted', () => `seed ${seed}, ${key}: not answered within ${PATIENCE_BEATS} beats`)
    if (id === 'aborted') of.aborted++
    else if (id !== null) of.ids.add(id)
    return id
  }

  /** Or until it is not answered at all: that has been told of. */
  async function askUntilTold(key: string, order: Order): Promise<void> {
    for (let asked = 0; asked < MOST_ASKS; asked++) {
      if ((await ask(key, order)) !== null) return
      await pause(100)
    }
    const of = told.get(key)
    if (of !== undefined) of.unanswered++
  }

  for (const way of MISTAKES) await askUntilTold(`mistake-${way.replaceAll(' ', '-')}`, { ...ORDER, way })
  for (const [key, [text, order]] of Object.entries(SWALLOWED)) {
    const { sendOn, answer } = await untilHeld(text, application, () => ask(key, { ...ORDER, ...order }))
    await answer
    sendOn()
    await askUntilTold(key, { ...ORDER, ...order })
  }
  const order = { ...ORDER, calls: true, isPatient: false }
  const send = () => sendAndWait(services.port(0), LOST_RESULT, order, PATIENCE_BEATS, services.pulse(0))
  const { sendOn } = await untilHeld(RESULT, commands, send)
  await services.kill(0)
  await askUntilTold(LOST_RESULT, order)
  sendOn()
  return told
}
