import { setTimeout as pause } from 'node:timers/promises'
import type { Pool } from 'pg'
import type { FaultProxy } from '../../../test/support/fault-proxy.js'
import type { Check } from '../checks.js'
import type { Findings } from '../layer.js'
import { beatsIn, Late } from '../limits/pulse.js'
import { type Told, toldNothing } from './clients.js'
import { ACT, type Act, CLAIMS_NOTHING, LEASE_MS } from './order.js'
import type { Services } from './services.js'
import { NeverHeld, untilHeld } from './until-held.js'

const PATIENCE_BEATS = beatsIn(10 * LEASE_MS)
const MOST_ASKS = 100
/** Duplicates of a key whose transaction is open. */
const DUPLICATES = 12
/** A held statement meets its time limit on a busy machine: then the scene is played again with another key. */
const MOST_TRIES = 5

interface Stage {
  readonly services: Services
  readonly commands: FaultProxy
  readonly application: FaultProxy
  readonly operator: Pool
  readonly findings: Findings
  readonly seed: number
}

interface Request {
  readonly act?: Act
  /** Whether the request claims its key, as another process may, while the others claim nothing. */
  readonly claims?: boolean
  readonly isolation?: 'repeatable read' | 'serializable'
}

/** `id`: of its effect, with 201. Status 0: it was not answered. */
interface Reply {
  readonly status: number
  readonly id: string | null
}

/**
 * Orders whose transactions take their keys, one scene after the other: two requests meet at each place where the key must not be
 * taken twice, or an answer not be believed. Which of them comes when is decided by holding their statements back.
 */
export async function playUnclaimedScenes(stage: Stage): Promise<ReadonlyMap<string, Told>> {
  const told = new Map<string, Told>()
  for (const [name, scene] of Object.entries(SCENES)) {
    for (let number = 1; number <= MOST_TRIES; number++) {
      const key = `${name}-${number}`
      if (await hasCome(scene, new Scenery(stage, key, told))) break
    }
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
class Scenery {
  readonly stage: Stage
  readonly key: string
  readonly #told: Map<string, Told>

  constructor(stage: Stage, key: string, told: Map<string, Told>) {
    this.stage = stage
    this.key = key
    this.#told = told
  }

  /** The id of a success counts as what the clients of the key were told. */
  async ask(service: 0 | 1, { act = 'acts', claims = false, isolation }: Request = {}, key = this.key): Promise<Reply> {
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

/** Resolves with whether it came as far as it should. */
type Scene = (scenery: Scenery) => Promise<boolean>

const SCENES: Readonly<Record<string, Scene>> = {
  /** A retry reads the effect of its own first attempt, and declines; the first attempt has succeeded. */
  async 'reads-its-own-effect'(scenery) {
    const { application } = scenery.stage
    const retry = await untilHeld('AS seen', application, () => scenery.ask(1, { act: 'reads before' }))
    const first = await scenery.ask(0)
    retry.sendOn()
    const { status } = await retry.answer
    if (first.id !== null) scenery.expect('S3', status !== 402, 'a retry is declined, and the first attempt got 201')
    await scenery.askUntilTold()
    return first.id !== null
  },

  /** A retry declines while the first attempt is about to commit. */
  async 'declines-beside-a-commit'(scenery) {
    const { commands, application } = scenery.stage
    const retry = await untilHeld('fence_v1', commands, () => scenery.ask(1, { act: 'declines' }))
    const first = await untilHeld('finish_v1', application, () => scenery.ask(0))
    retry.sendOn()
    await pause(50)
    first.sendOn()
    const [{ status }, { id }] = await Promise.all([retry.answer, first.answer])
    if (id !== null) scenery.expect('S3', status !== 402, 'a retry is declined beside a transaction that got 201')
    await scenery.askUntilTold()
    return id !== null
  },

  /** A success without a transaction: no record says what it did. */
  async 'succeeds-without-a-transaction'(scenery) {
    const { status } = await scenery.ask(0, { act: 'acts outside' })
    scenery.expect('S3', status !== 201, 'a success of which no record says is sent')
    await scenery.askUntilTold()
    return true
  },

  /** The record has expired, and nothing has swept it away. */
  async 'comes-after-the-retention'(scenery) {
    const { operator } = scenery.stage
    const name = `single-tenant:${scenery.key}`
    await scenery.askUntilTold()
    await operator.query("UPDATE once_per_key.records SET expires_at = now() - interval '1 s' WHERE name = $1", [name])
    await operator.query('DELETE FROM effects WHERE key = $1', [scenery.key])
    scenery.forget()
    await scenery.askUntilTold()
    return true
  },

  /** Between its look and its transaction another attempt has claimed the key, acted, and failed. */
  async 'has-looked-before-another'(scenery) {
    const { application } = scenery.stage
    const isolation = 'repeatable read'
    await scenery.ask(0, { act: 'declines', claims: true, isolation })
    const late = await untilHeld('enter_v1', application, () => scenery.ask(1, { isolation }))
    const other = await scenery.ask(0, { act: 'acts outside and breaks', claims: true, isolation })
    late.sendOn()
    const { status } = await late.answer
    await scenery.askUntilTold({ isolation })
    return other.status === 500 && status === 409
  },

  /** Its COMMIT is lost, and another attempt has succeeded by the time that it asks. */
  async 'asks-after-a-lost-commit'(scenery) {
    const { commands, application } = scenery.stage
    const lost = application.dropRequest('finish_v1')
    const first = await untilHeld('fence_v1', commands, () => scenery.ask(0))
    await lost
    await scenery.askUntilTold()
    first.sendOn()
    await first.answer
    return true
  },

  /** The transaction that completes the record is not the one that has taken the key. */
  async 'ends-its-transaction-itself'(scenery) {
    const { status } = await scenery.ask(0, { act: 'commits itself' })
    scenery.expect('S3', status !== 201, 'a transaction that has not taken the key completes its record')
    await scenery.askUntilTold()
    return true
  },

  /** Duplicates of a key whose transaction is open give their connections back before they wait. */
  async 'waits-without-a-connection'(scenery) {
    const { application, operator } = scenery.stage
    const first = await untilHeld('finish_v1', application, () => scenery.ask(0))
    let areOver = false
    const duplicates = Promise.all(Array.from({ length: DUPLICATES }, () => scenery.ask(1))).finally(() => {
      areOver = true
    })
    let waiting = 0
    while (!areOver) waiting = Math.max(waiting, (await operator.query(WAITING)).rows[0].sessions)
    scenery.expect('L1', waiting === 0, `${waiting} sessions of duplicates wait inside their transactions`)
    first.sendOn()
    await Promise.all([first.answer, duplicates])
    await scenery.askUntilTold()
    return true
  },

  /** Two strangers, each in a serializable transaction, do not abort each other. */
  async 'meets-a-stranger'(scenery) {
    const { application } = scenery.stage
    const [isolation, stranger] = ['serializable', `${scenery.key}-stranger`] as const
    const first = await untilHeld('finish_v1', application, () => scenery.ask(0, { isolation }))
    const second = await untilHeld('finish_v1', application, () => scenery.ask(1, { isolation }, stranger))
    first.sendOn()
    const { id } = await first.answer
    second.sendOn()
    const { id: other } = await second.answer
    const haveBoth = id !== null && other !== null
    const isLast = scenery.key.endsWith(`-${MOST_TRIES}`)
    if (haveBoth || isLast) scenery.expect('L1', haveBoth, 'transactions of two keys abort each other each time')
    await scenery.askUntilTold({ isolation })
    await scenery.askUntilTold({ isolation }, stranger)
    return haveBoth
  },
}

const WAITING = "SELECT count(*)::int AS sessions FROM pg_locks WHERE locktype = 'advisory' AND NOT granted"
