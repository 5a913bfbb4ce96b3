import { setTimeout as pause } from 'node:timers/promises'
import type { FaultProxy } from '../../../test/support/fault-proxy.js'
import type { Check } from '../checks.js'
import type { Findings } from '../layer.js'
import { beatsIn, Late } from '../limits/pulse.js'
import { type Told, toldNothing } from './clients.js'
import { ACT, type Act, CLAIMS_NOTHING, LEASE_MS } from './order.js'
import type { Services } from './services.js'

const PATIENCE_BEATS = beatsIn(10 * LEASE_MS)
const MOST_ASKS = 100
/** A held statement meets its time limit on a busy machine: then the scene is played again with another key. */
export const MOST_TRIES = 5

/** Where scenes are played. */
export interface Stage {
  readonly services: Services
  readonly commands: FaultProxy
  readonly application: FaultProxy
  readonly findings: Findings
  readonly seed: number
}

interface Request {
  readonly act?: Act
  /** Whether the request claims its key, as another process may, while the others claim nothing. */
  readonly claims?: boolean
  readonly isolation?: 'repeatable read' | 'serializable'
  readonly headers?: Readonly<Record<string, string>>
}

/** `id`: of its effect, with 201. Status 0: it was not answered. */
interface Reply {
  readonly status: number
  readonly id: string | null
}

/** Resolves with whether it came as far as it should. */
export type Scene<On extends Stage> = (scenery: Scenery<On>) => Promise<boolean>

/** One scene after the other. Returns what the clients of their keys were told. */
export async function playScenes<On extends Stage>(
  stage: On,
  scenes: Readonly<Record<string, Scene<On>>>,
): Promise<Map<string, Told>> {
  const told = new Map<string, Told>()
  for (const [name, scene] of Object.entries(scenes)) {
    for (let number = 1; number <= MOST_TRIES; number++) {
      if (await hasCome(scene, new Scenery(stage, `${name}-${number}`, told))) break
    }
  }
  return told
}

/** As far as it should. */
async function hasCome<On extends Stage>(scene: Scene<On>, scenery: Scenery<On>): Promise<boolean> {
  try {
    return await scene(scenery)
  } catch (error) {
    if (!(error instanceof NeverHeld)) throw error
    scenery.expect('L1', false, error.message)
    return true
  }
}

/** What a scene can do with its key. */
export class Scenery<On extends Stage> {
  readonly stage: On
  readonly key: string
  readonly #told: Map<string, Told>

  constructor(stage: On, key: string, told: Map<string, Told>) {
    this.stage = stage
    this.key = key
    this.#told = told
  }

  /** The id of a success counts as what the clients of the key were told. */
  async ask(
    service: 0 | 1,
    { act = 'acts', claims = false, isolation, headers }: Request = {},
    key = this.key,
  ): Promise<Reply> {
    const told = this.#told.get(key) ?? toldNothing()
    this.#told.set(key, told)
    const { services } = this.stage
    const leaving = new AbortController()
    const sent = fetch(`http://127.0.0.1:${services.port(service)}/scenes`, {
      method: 'POST',
      headers: {
        'Content-Type': 'application/json',
        'Idempotency-Key': key,
        [ACT]: act,
        ...(!claims && { [CLAIMS_NOTHING]: 'yes' }),
        ...headers,
      },
      body: JSON.stringify({ isolation: isolation ?? null }),
      signal: leaving.signal,
    }).then(async (response) => ({ status: response.status, text: await response.text() }))
    try {
      const { status, text } = await services.pulse(service).within(PATIENCE_BEATS, sent)
      const id: string | null = status === 201 ? JSON.parse(text).id : null
      if (id !== null) told.ids.add(id)
      return { status, id }
    } catch (error) {
      if (!(error instanceof Late)) throw error
      leaving.abort()
      this.expect('L2', false, `not answered within ${PATIENCE_BEATS} beats`)
      return { status: 0, id: null }
    }
  }

  /** Until it is told that the order was carried out. */
  async askUntilTold(request: Request = {}, key = this.key): Promise<void> {
    for (let asked = 0; asked < MOST_ASKS; asked++) {
      if ((await this.ask(1, request, key)).id !== null) return
      await pause(100)
    }
    const told = this.#told.get(key) as Told
    told.unanswered++
  }

  /** What its clients were told is of a record that has expired. */
  forget(): void {
    this.#told.delete(this.key)
  }

  expect(check: Check, holds: boolean, story: string): void {
    this.stage.findings.expect(check, holds, () => `seed ${this.stage.seed}, ${this.key}: ${story}`)
  }
}

const MOST_HOLDS = 400

/** No order came so far. */
export class NeverHeld extends Error {}

/**
 * Asks until a request with this text is held back on its way: on a busy machine an order may be refused before it comes that
 * far. `sendOnConnection` lets it go; `answer` is what whoever asked gets.
 */
export async function untilHeld<Answer>(
  text: string,
  application: FaultProxy,
  ask: () => Promise<Answer>,
): Promise<{ readonly sendOn: () => void; readonly answer: Promise<Answer> }> {
  const held = application.hold(text)
  for (let asked = 0; asked < MOST_HOLDS; asked++) {
    const answer = ask()
    const sendOn = await Promise.race([held, answer.then(() => null)])
    if (sendOn !== null) return { sendOn, answer }
    await pause(100)
  }
  application.disarm()
  throw new NeverHeld(`Of ${MOST_HOLDS} orders, none came as far as ${text}.`)
}
