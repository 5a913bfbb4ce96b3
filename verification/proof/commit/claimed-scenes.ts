import { setTimeout as pause } from 'node:timers/promises'
import { count } from './faults.js'
import { LEASE_MS, MISTAKES, type Order } from './order.js'
import { type Scene, type Scenery, untilHeld } from './scenery.js'

export const STALE_OWNERS = 'completions of a stale owner in its transaction'

const EFFECT = 'INSERT INTO effects'
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
/** Its run ends before a client has had enough. */
export const HASTY: Order = { ...ORDER, isPatient: false }

/** Orders one by one: a transaction of the handler's comes to nothing. Then the client asks until the order is carried out. */
const MISTAKEN = Object.fromEntries(
  MISTAKES.map((way): [string, Scene] => [
    `mistake-${way.replaceAll(' ', '-')}`,
    async (scenery) => {
      await scenery.askUntilTold({ order: { ...ORDER, way } })
      return true
    },
  ]),
)

/** Requests that claim their keys: owners that are late, or die, and statements that never reach the database. */
export const CLAIMED_SCENES: Readonly<Record<string, Scene>> = {
  /** A process stands still in the midst of its transaction, until another attempt has taken the key over: then it completes the record. */
  async 'wakes-up-late'(scenery) {
    const { application, services, tried } = scenery.stage
    const order = { ...HASTY, pauseMs: 0 }
    const owner = await untilHeld(EFFECT, application, () => scenery.ask(0, { order }))
    const woken = services.stop(0, 2.5 * LEASE_MS)
    const next = await untilHeld(EFFECT, application, () => scenery.ask(1, { order }))
    owner.sendOn()
    await woken
    count(tried, STALE_OWNERS)
    await owner.answer
    next.sendOn()
    await next.answer
    await scenery.askUntilTold({ order })
    return true
  },

  ...MISTAKEN,
  'swallowed-completion': (scenery) => swallow(scenery, scenery.stage.dialect.texts.completion, ORDER),
  'swallowed-mark': (scenery) => swallow(scenery, scenery.stage.dialect.texts.mark, ORDER),
  'swallowed-effect': (scenery) => swallow(scenery, EFFECT, HASTY),

  /** A step has called somebody, and its process dies before the database has the result: the next attempt calls again. */
  async 'lost-result'(scenery) {
    const { commands, dialect, services } = scenery.stage
    const order = { ...HASTY, calls: true }
    const dead = await untilHeld(dialect.texts.result, commands, () => scenery.ask(0, { order, dies: true }))
    await services.kill(0)
    await scenery.askUntilTold({ order })
    dead.sendOn()
    return true
  },

  /** A key is claimed while its owner acts. */
  async 'claims-what-is-claimed'(scenery) {
    const { application } = scenery.stage
    const owner = await untilHeld(EFFECT, application, () => scenery.ask(0, { act: 'acts outside', claims: true }))
    await scenery.ask(1, { claims: true })
    owner.sendOn()
    await owner.answer
    await scenery.askUntilTold({ claims: true })
    return true
  },

  /** An attempt has read a record that has failed, and another one has taken it over and succeeded before it writes. */
  async 'takes-over-what-it-has-read'(scenery) {
    const { commands, dialect } = scenery.stage
    await scenery.ask(0, { act: 'declines', claims: true })
    const late = await untilHeld(dialect.texts.update, commands, () => scenery.ask(1, { claims: true }))
    const { id } = await scenery.ask(0, { claims: true })
    late.sendOn()
    await late.answer
    await scenery.askUntilTold({ claims: true })
    return id !== null
  },

  /** The completion of an owner that has died arrives when another attempt owns the record. */
  async 'completes-after-its-death'(scenery) {
    const { services, commands, application, dialect, query } = scenery.stage
    const dead = await untilHeld(dialect.texts.complete, commands, () =>
      scenery.ask(0, { act: 'acts outside', claims: true, dies: true }),
    )
    await services.kill(0)
    const next = await untilHeld('UPDATE effects', application, () => scenery.ask(1, { claims: true }))
    dead.sendOn()
    await dead.answer
    await pause(50)
    const record = (await query(dialect.recordsSql)).find(({ name }) => name === scenery.key)
    scenery.expect('S6', record?.state === 'in-flight', `an owner that has died has left its record ${record?.state}`)
    next.sendOn()
    const { id } = await next.answer
    await scenery.askUntilTold({ claims: true })
    return id !== null
  },
}

/** The database receives nothing. Whoever asks is answered meanwhile. */
async function swallow(scenery: Scenery, text: string, order: Order): Promise<boolean> {
  const { sendOn, answer } = await untilHeld(text, scenery.stage.application, () => scenery.ask(0, { order }))
  await answer
  sendOn()
  await scenery.askUntilTold({ order })
  return true
}
