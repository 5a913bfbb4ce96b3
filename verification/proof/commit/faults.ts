import { setTimeout as pause } from 'node:timers/promises'
import type { Pool } from 'pg'
import type { FaultProxy } from '../../../test/support/fault-proxy.js'
import type { PostgresServer } from '../../../test/support/postgres-server.js'
import { IN_STATEMENT } from '../../../test/support/postgres-statements.js'
import type { Choices } from '../chaos/choices.js'
import type { Services } from './services.js'

export interface Ground {
  readonly services: Services
  readonly database: PostgresServer
  readonly commands: FaultProxy
  readonly application: FaultProxy
  readonly operator: Pool
  /** How often each fault was tried. */
  readonly tried: Record<string, number>
}

type Fault = (ground: Ground, choices: Choices) => unknown

type Choice = readonly [name: string, weight: number, fault: Fault]

/** By how often each is chosen. What waits for a COMMIT waits for the next. */
const FAULTS: readonly Choice[] = [
  [
    'replies to COMMIT lost',
    6,
    ({ application, tried }) => void application.dropReplyTo('COMMIT').then(() => count(tried, COMMITS_WITHOUT_REPLY)),
  ],
  ['COMMITs lost', 4, ({ application }) => void application.dropRequest('COMMIT')],
  ['replies to completions lost', 3, ({ application }) => void application.dropReplyTo(IN_STATEMENT.completion)],
  ['replies to commands lost', 3, ({ commands }, choices) => void commands.dropReplyTo(choices.one(COMMANDS))],
  ['connections of commands cut', 2, ({ commands }) => commands.reset()],
  ['connections of transactions cut', 2, ({ application }) => application.reset()],
  ['connections of transactions stood still', 1, standStill],
  ['backends looked for', 2, stopBackend],
  ['sessions ended by the database', 2, ({ operator }) => operator.query(END_SESSIONS).catch(() => {})],
  [
    'services stopped',
    2,
    ({ services }, choices) => services.stop(choices.between(0, services.size - 1), choices.between(500, 4_000)),
  ],
  ['services killed', 2, ({ services }, choices) => services.kill(choices.between(0, services.size - 1))],
  ['databases crashed', 0.4, ({ database }) => database.crash().then(() => database.restart())],
]
/** Such a fault waits for the next COMMIT, and another may take its place. */
export const COMMITS_WITHOUT_REPLY = 'COMMITs without a reply'
export const STOPPED_BACKENDS = 'backends in a transaction stopped'
/** Of the faults. */
export const NAMES = FAULTS.map(([name]) => name)
const COMMANDS = [IN_STATEMENT.begin, IN_STATEMENT.renew, IN_STATEMENT.update] as const
const END_SESSIONS = `SELECT pg_terminate_backend(pid) FROM pg_stat_activity
  WHERE backend_type = 'client backend' AND pid <> pg_backend_pid() AND random() < 0.3`

const IN_TRANSACTION = `SELECT pid FROM pg_stat_activity
  WHERE state = 'idle in transaction' AND pid <> pg_backend_pid() ORDER BY random() LIMIT 1`
const MOST_LOOKS = 100

/** Nothing passes for a while, and no connection ends meanwhile. */
async function standStill({ application }: Ground, choices: Choices): Promise<void> {
  application.freeze()
  await pause(choices.between(500, 3_000))
  application.heal()
}

/** SIGSTOP, and SIGCONT after a while, to the backend of a session that is in a transaction. */
async function stopBackend({ operator, tried }: Ground, choices: Choices): Promise<void> {
  for (let look = 0; look < MOST_LOOKS; look++) {
    const { rows } = await operator.query(IN_TRANSACTION).catch(() => ({ rows: [] }))
    if (rows.length > 0 && signal(rows[0].pid, 'SIGSTOP')) {
      count(tried, STOPPED_BACKENDS)
      await pause(choices.between(500, 3_000))
      signal(rows[0].pid, 'SIGCONT')
      return
    }
    await pause(10)
  }
}

/** `false`: it has ended meanwhile. */
function signal(pid: number, name: NodeJS.Signals): boolean {
  try {
    return process.kill(pid, name)
  } catch {
    return false
  }
}

export interface Strikes {
  haveAllStruck(): boolean
  stop(): Promise<void>
}

/** One fault after the other, until it is stopped. Each comes once before any comes twice. */
export function strike(ground: Ground, choices: Choices): Strikes {
  let isOver = false
  const total = FAULTS.reduce((sum, [, weight]) => sum + weight, 0)
  const first = choices.shuffled(FAULTS)
  const next = () => {
    const once = first.pop()
    if (once !== undefined) return once
    let left = (choices.between(0, 9_999) / 10_000) * total
    for (const each of FAULTS) {
      left -= each[1]
      if (left < 0) return each
    }
    return FAULTS[0] as Choice
  }
  const done = (async () => {
    while (!isOver) {
      const [name, , fault] = next()
      count(ground.tried, name)
      await fault(ground, choices)
      await pause(choices.between(20, 250))
    }
    ground.application.disarm()
    ground.commands.disarm()
  })()
  return {
    haveAllStruck: () => first.length === 0,
    stop() {
      isOver = true
      return done
    },
  }
}

export function count(tally: Record<string, number>, name: string): void {
  tally[name] = (tally[name] ?? 0) + 1
}
