import { setTimeout as pause } from 'node:timers/promises'
import type { FaultProxy } from '../../../test/support/fault-proxy.js'
import type { Check } from '../checks.js'
import type { Findings } from '../layer.js'
import { beatsIn, Late } from '../limits/pulse.js'
import { createTold, type Reply, send, type Told, toPath } from './clients.js'
import type { Dialect, Pool, Query, Server } from './dialect.js'
import { count } from './faults.js'
import { ACT, type Act, CLAIMS_NOTHING, CLIENT, type ClientName, LEASE_MS, type Order } from './order.js'
import type { Services } from './services.js'

/** Several times as long as a statement may take, less than a connection may be silent, and a fraction of a patient run's time. */
const PATIENCE_BEATS = beatsIn(10 * LEASE_MS)
const MOST_ASKS = 100
/** A held statement meets its time limit on a busy machine: then the scene is played again with another key. */
export const MOST_TRIES = 5
/** A line of the report: what such a scene is for was not tried. */
const UNFINISHED = 'scenes that never came as far as they should'

/** Services on one database, and what befalls them. */
export interface Stage {
  readonly dialect: Dialect
  readonly database: Server
  readonly services: Services
  readonly commands: FaultProxy
  readonly application: FaultProxy
  readonly operator: Pool
  readonly query: Query
  readonly findings: Findings
  /** Database and seed, for stories. */
  readonly run: string
  /** How often each thing was tried. */
  readonly tried: Record<string, number>
}

interface Request {
  readonly act?: Act
  /** In place of an act. */
  readonly order?: Order
  /** Whether the request claims its key, as another process may, while the others claim nothing. */
  readonly claims?: boolean
  readonly isolation?: 'repeatable read' | 'serializable'
  /** How the service uses the database. */
  readonly client?: ClientName
  /** Its process is killed meanwhile. */
  readonly dies?: boolean
}

/** Resolves with whether it came as far as it should. */
export type Scene = (scenery: Scenery) => Promise<boolean>

/** One scene after the other. Returns what the clients of their keys were told. */
export async function playScenes(stage: Stage, scenes: Readonly<Record<string, Scene>>): Promise<Map<string, Told>> {
  const told = new Map<string, Told>()
  for (const [name, scene] of Object.entries(scenes)) {
    let comes = false
    for (let number = 1; number <= MOST_TRIES && !comes; number++) {
      comes = await hasCome(scene, new Scenery(stage, `${name}-${number}`, told))
    }
    if (!comes) count(stage.tried, UNFINISHED)
  }
  return told
}

/** As far as it should. */
async function hasCome(scene: Scene, scenery: Scenery): Promise<boolean> {
  try {
    return await scene(scenery)
  } catch (error) {
    if (!(error instanceof NeverHeld)) throw error
    scenery.expect('L1', false, error.message)
    return true
  }
}

/** What a scene can do with its key. */
export class Scenery {
  readonly stage: Stage
  readonly key: string
  readonly #told: Map<string, Told>

  constructor(stage: Stage, key: string, told: Map<string, Told>) {
    this.stage = stage
    this.key = key
    this.#told = told
  }

  /** The name of its record. */
  get record(): string {
    return `single-tenant:${this.key}`
  }

  /** The id of a success counts as what the clients of the key were told. */
  async ask(service: 0 | 1, request: Request = {}, key = this.key): Promise<Reply> {
    const {
      act = 'acts',
      order,
      claims = order !== undefined,
      isolation = null,
      client = 'usual',
      dies = false,
    } = request
    const told = this.#told.get(key) ?? createTold()
    this.#told.set(key, told)
    const { services } = this.stage
    const leaving = new AbortController()
    const sent = send(
      services.port(service),
      order === undefined ? 'scenes' : toPath(order),
      key,
      order ?? { isolation },
      { [ACT]: act, [CLIENT]: client, ...(!claims && { [CLAIMS_NOTHING]: 'yes' }) },
      leaving.signal,
    )
    const reply = await services
      .pulse(service)
      .within(PATIENCE_BEATS, sent)
      .catch((error) => {
        if (!(error instanceof Late)) throw error
        leaving.abort()
        return sent
      })
    if (!dies) this.expect('L2', reply.status !== 0, `not answered, or not within ${PATIENCE_BEATS} beats`)
    if (reply.status === 0) told.aborted++
    if (reply.id !== null) told.ids.add(reply.id)
    return reply
  }

  /** Until it is told that the order was carried out. */
  async askUntilTold(request: Request = {}, key = this.key): Promise<void> {
    for (let asked = 0; asked < MOST_ASKS; asked++) {
      const { status, id } = await this.ask(1, request, key)
      // That it was not answered at all has been told of.
      if (id !== null || status === 0) return
      await pause(100)
    }
    const told = this.#told.get(key) as Told
    told.unanswered++
  }

  /** What its clients were told is of a record that has gone, or was never there. */
  forget(): void {
    this.#told.delete(this.key)
  }

  expect(check: Check, holds: boolean, story: string): void {
    this.stage.findings.expect(check, holds, () => `${this.stage.run}, ${this.key}: ${story}`)
  }
}

const MOST_HOLDS = 400

/** No order came so far. */
class NeverHeld extends Error {}

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
  for (let asked = 0; asked < MOST_HOLDS; asked++) {
    const answer = ask()
    const sendOn = await Promise.race([held, answer.then(() => null)])
    if (sendOn !== null) return { sendOn, answer }
    await pause(100)
  }
  application.disarm()
  throw new NeverHeld(`Of ${MOST_HOLDS} orders, none came as far as ${text}.`)
}
