import { setTimeout as pause } from 'node:timers/promises'
import type { Choices } from '../chaos/choices.js'
import type { Stage } from './scenery.js'

type Fault = (stage: Stage, choices: Choices) => unknown

type Choice = readonly [name: string, weight: number, fault: Fault]

/** By how often each is chosen. What waits for a COMMIT waits for the next. */
const FAULTS: readonly Choice[] = [
  [
    'replies to COMMIT lost',
    6,
    ({ application, tried }) => void application.dropReplyTo('COMMIT').then(() => count(tried, COMMITS_WITHOUT_REPLY)),
  ],
  ['COMMITs lost', 4, ({ application }) => void application.dropRequest('COMMIT')],
  [
    'replies to completions lost',
    3,
    ({ application, dialect }) => void application.dropReplyTo(dialect.texts.completed),
  ],
  ['replies to claims lost', 1, ({ commands, dialect }) => void commands.dropReplyTo(dialect.texts.claim)],
  ['replies to commands lost', 2, (stage, choices) => void stage.commands.dropReplyTo(chooseCommand(stage, choices))],
  ['commands torn', 2, (stage, choices) => void stage.commands.tearRequest(chooseCommand(stage, choices))],
  ['connections of commands cut', 2, ({ commands }) => commands.reset()],
  ['connections of transactions cut', 2, ({ application }) => application.reset()],
  ['connections of transactions stood still', 1, standStill],
  ['backends looked for', 2, stopSession],
  ['sessions ended by the database', 2, ({ dialect, query }) => dialect.endSessions(query).catch(() => {})],
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
const MOST_LOOKS = 25
/** InnoDB shows the same again to whoever looks more often than each 100 ms. */
const LOOK_MS = 120

function chooseCommand({ dialect: { texts } }: Stage, choices: Choices): string {
  return choices.one([texts.renew, texts.update])
}

/** Nothing passes for a while, and no connection ends meanwhile. */
async function standStill({ application }: Stage, choices: Choices): Promise<void> {
  application.freeze()
  await pause(choices.between(500, 3_000))
  application.heal()
}

/** For a while. */
async function stopSession({ dialect, database, query, tried }: Stage, choices: Choices): Promise<void> {
  for (let look = 0; look < MOST_LOOKS; look++) {
    const goOn = await dialect.stopSession(query, database).catch(() => null)
    if (goOn !== null) {
      count(tried, STOPPED_BACKENDS)
      await pause(choices.between(500, 3_000))
      return goOn()
    }
    await pause(LOOK_MS)
  }
}

export interface Strikes {
  haveAllStruck(): boolean
  stop(): Promise<void>
}

/** One fault after the other, until it is stopped. Each comes once before any comes twice. */
export function strike(stage: Stage, choices: Choices): Strikes {
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
      count(stage.tried, name)
      await fault(stage, choices)
      await pause(choices.between(20, 250))
    }
    stage.application.disarm()
    stage.commands.disarm()
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
