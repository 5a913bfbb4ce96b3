import { setTimeout as pause } from 'node:timers/promises'
import type { FaultProxy } from '../../../test/support/fault-proxy.js'
import type { MariaDbServer } from '../../../test/support/mariadb-server.js'
import type { Choices } from '../chaos/choices.js'
import { count, type Strikes } from '../commit/faults.js'
import type { Services } from '../commit/services.js'

export interface Ground {
  readonly services: Services
  readonly database: MariaDbServer
  readonly commands: FaultProxy
  readonly application: FaultProxy
  /** How often each fault was tried. */
  readonly tried: Record<string, number>
}

type Fault = (ground: Ground, choices: Choices) => unknown

/** What waits for a COMMIT waits for the next. */
const FAULTS: readonly (readonly [name: string, fault: Fault])[] = [
  ['replies to COMMIT lost', ({ application }) => void application.dropReplyTo('COMMIT')],
  ['COMMITs lost', ({ application }) => void application.dropRequest('COMMIT')],
  ['replies to completions lost', ({ application }) => void application.dropReplyTo("state = _binary'completed'")],
  ['replies to claims lost', ({ commands }) => void commands.dropReplyTo('INSERT')],
  ['commands torn', ({ commands }) => void commands.tearRequest('UPDATE')],
  ['connections of commands cut', ({ commands }) => commands.reset()],
  ['connections of transactions cut', ({ application }) => application.reset()],
  ['connections of transactions stood still', standStill],
  ['connections killed by the database', killConnections],
  [
    'services stopped',
    ({ services }, choices) => services.stop(choices.between(0, services.size - 1), choices.between(500, 4_000)),
  ],
  ['services killed', ({ services }, choices) => services.kill(choices.between(0, services.size - 1))],
  ['databases crashed', crash],
]
/** Of the faults. */
export const NAMES = FAULTS.map(([name]) => name)
const CRASHES_EVERY = 4

const SESSIONS =
  'SELECT id FROM information_schema.processlist WHERE db IS NOT NULL AND id <> CONNECTION_ID() AND RAND() < 0.3'

/** Nothing passes for a while, and no connection ends meanwhile. */
async function standStill({ application }: Ground, choices: Choices): Promise<void> {
  application.freeze()
  await pause(choices.between(500, 3_000))
  application.heal()
}

async function killConnections({ database }: Ground): Promise<void> {
  const sessions = await database.run(SESSIONS)
  // It may have ended meanwhile.
  for (const { id } of sessions) await database.run(`KILL CONNECTION ${id}`).catch(() => {})
}

/** To start it again takes seconds. */
async function crash({ database }: Ground): Promise<void> {
  await database.crash()
  await database.restart()
}

/** One fault after the other, until it is stopped. Each comes once before any comes twice. */
export function strike(ground: Ground, choices: Choices): Strikes {
  let isOver = false
  let rounds = 0
  let round = choices.shuffled(FAULTS)
  const next = () => {
    if (round.length === 0) {
      rounds++
      round = choices.shuffled(FAULTS.filter(([, fault]) => fault !== crash || rounds % CRASHES_EVERY === 0))
    }
    return round.pop() as (typeof FAULTS)[number]
  }
  const done = (async () => {
    while (!isOver) {
      const [name, fault] = next()
      count(ground.tried, name)
      await fault(ground, choices)
      await pause(choices.between(20, 250))
    }
    ground.application.disarm()
    ground.commands.disarm()
  })()
  return {
    haveAllStruck: () => rounds > 0 || round.length === 0,
    stop() {
      isOver = true
      return done
    },
  }
}
