import {
  type BeginReply,
  type Claim,
  type CommandReply,
  type Completion,
  machine,
  type Unclaimed,
} from '../../../src/core/index.js'
import type { InFlight, StoredRecord } from '../../sql/record-columns.js'
import type { MySqlDatabase } from '../connection/database.js'
import { isDuplicate, isLocked, MySqlStoreError } from '../errors.js'
import type { Statement } from '../statement.js'
import { parseFoundRow, type RecordSnapshot } from './record-row.js'
import type { Statements } from './statements.js'
import { hasRoomForSteps } from './steps-column.js'

/** A command of the machine, on a record and the database's time. */
type Command<Reply> = (record: StoredRecord | null, now: number) => machine.Change<Reply>

/**
 * The commands of the machine on the rows of the table. A row is read plainly, the machine decides, and the row is written only if it is
 * still what was read; otherwise it is read again. No command waits for another one that only reads, none leaves a transaction
 * open, and each statement may be sent twice.
 */
export class MySqlRecords {
  readonly #database: MySqlDatabase
  readonly #statements: Statements
  readonly #isUrgent: boolean
  readonly #turns = new KeyedQueue()

  /** `isUrgent`: late, its commands are worth nothing. */
  constructor(database: MySqlDatabase, statements: Statements, isUrgent = false) {
    this.#database = database
    this.#statements = statements
    this.#isUrgent = isUrgent
  }

  /** `fingerprint`: whoever sends another one is not shown the answer. */
  async find(key: string, fingerprint?: string): Promise<RecordSnapshot> {
    const { read, readShown } = this.#statements
    const sent = fingerprint === undefined ? read(key) : readShown(key, fingerprint)
    const [row] = await this.#database.queryRows(sent, this.#isUrgent)
    return parseFoundRow(row)
  }

  /** The row as last committed; `'locked'`: a transaction holds it. */
  async findLastCommitted(key: string): Promise<RecordSnapshot | 'locked'> {
    try {
      const [row] = await this.#database.queryRows(this.#statements.lockAtOnce(key), this.#isUrgent)
      return row === undefined ? this.find(key) : parseFoundRow(row)
    } catch (error) {
      if (isLocked(error)) return 'locked'
      throw error
    }
  }

  /** @throws MySqlStoreError */
  async change<Reply>(key: string, command: Command<Reply>, fingerprint?: string): Promise<Reply> {
    for (let turn = 0; turn < MOST_TURNS; turn++) {
      const found = await this.find(key, fingerprint)
      const { record, reply } = command(found.record, found.now)
      if (record === found.record || (await this.#writeIfUnchanged(key, record, found))) return reply
    }
    throw new MySqlStoreError('contended', 'The record changed repeatedly while this command tried to change it.')
  }

  /** A new key takes one statement. A row that a transaction holds means that the key is in flight: it may be completing it. */
  async begin(key: string, claim: Claim): Promise<BeginReply> {
    let found: RecordSnapshot | undefined
    try {
      const first = machine.begin(null, claim, 0)
      if (await this.#isInserted(this.#statements.claim(key, first.record as InFlight))) return first.reply
      for (let turn = 0; turn < MOST_TURNS; turn++) {
        found = await this.find(key, claim.fingerprint)
        const { record, reply } = machine.begin(found.record, claim, found.now)
        if (isLapsed(found) && isAboutLapse(reply)) {
          const last = await this.findLastCommitted(key)
          if (last === 'locked') return createInFlightReply(found, claim)
          if (last.version?.revision !== found.version?.revision) continue
        }
        if (record === found.record || (await this.#writeIfUnchanged(key, record, found))) return reply
      }
    } catch (error) {
      if (isLocked(error)) return createInFlightReply(found, claim)
      throw error
    }
    throw new MySqlStoreError('contended', 'The record changed repeatedly while this command tried to claim it.')
  }

  /** A result for which there is no room is done, and not kept. */
  step(key: string, own: Parameters<typeof machine.step>[1]): Promise<CommandReply> {
    const command: Command<CommandReply> = (record, now) => {
      const change = machine.step(record, own, now)
      if (own.result === null || hasRoomForSteps(change.record, this.#database.mostBytes)) return change
      return machine.step(record, { ...own, result: null }, now)
    }
    return this.#turns.runInTurn(key, () => this.change(key, command, own.fingerprint))
  }

  /** Whether the token's own row was in flight, and has a new lease. */
  async renewIfInFlight(key: string, token: string, leaseMs: number, retentionMs: number): Promise<boolean> {
    return (await this.#database.write(this.#statements.renew(key, token, leaseMs, retentionMs))) > 0
  }

  /** Whether the token's own row was in flight, and is completed. */
  async completeIfInFlight(key: string, completion: Completion): Promise<boolean> {
    return (await this.#database.write(this.#statements.complete(key, completion))) > 0
  }

  async #writeIfUnchanged(key: string, record: StoredRecord | null, { version }: RecordSnapshot): Promise<boolean> {
    const { insert, remove, update } = this.#statements
    if (version === null) return record === null || this.#isInserted(insert(key, record))
    const written = record === null ? remove(key, version) : update(key, record, version)
    return (await this.#database.write(written, this.#isUrgent)) > 0
  }

  /** `false`: there is a row, as the unique index decides; or the server is read-only, which the next read tells. */
  async #isInserted(statement: Statement): Promise<boolean> {
    try {
      return (await this.#database.write(statement, this.#isUrgent)) > 0
    } catch (error) {
      if (isDuplicate(error)) return false
      throw error
    }
  }
}

const MOST_TURNS = 20

function isLapsed({ record, now }: RecordSnapshot): boolean {
  return record?.state === 'in-flight' && now >= record.leaseUntil
}

/** It takes the record over, or shows that its owner is gone: only where no transaction holds it. */
function isAboutLapse(reply: BeginReply): boolean {
  return reply.acquired || reply.record.state === 'in-flight'
}

function createInFlightReply(found: RecordSnapshot | undefined, { fingerprint }: Claim): BeginReply {
  const record = found?.record ?? null
  const seen = {
    fingerprint: record?.fingerprint ?? fingerprint,
    attempt: record?.attempt ?? 1,
    uncertain: record !== null && record.state !== 'completed' && record.uncertain,
  }
  return { acquired: false, record: { state: 'in-flight', ...seen, leaseRemainingMs: 1 } }
}

/** The commands of runs whose transactions take their keys, each outside of a transaction. */
export function createUnclaimedCommands(records: MySqlRecords, urgent: MySqlRecords): Unclaimed {
  return {
    async look(key, looking) {
      const found = await urgent.find(key, looking.fingerprint)
      const looked = machine.look(found.record, looking, found.now)
      if (!isLapsed(found) || looked.acquired || looked.record.state !== 'in-flight') return looked
      if ((await urgent.findLastCommitted(key)) !== 'locked') return looked
      return { acquired: false, record: { ...looked.record, leaseRemainingMs: 1 } }
    },

    async fence(key, { token }) {
      const found = await records.findLastCommitted(key)
      if (found === 'locked') return { isTaken: true, record: null, isOwn: false }
      const { record, now } = found
      return { isTaken: false, record: machine.peek(record, now).reply, isOwn: record?.token === token }
    },

    async withhold(key, own) {
      try {
        if ((await records.findLastCommitted(key)) === 'locked') return { ok: false, record: null }
        return await records.change(key, (record, now) => machine.withhold(record, own, now), own.fingerprint)
      } catch (error) {
        if (isLocked(error)) return { ok: false, record: null }
        throw error
      }
    },
  }
}

/** How long a command that hangs keeps the next one waiting. */
const LONGEST_TURN_MS = 500

/**
 * Sends commands for one record one after another. Steps of a run may run side by side, and each command of theirs that another one
 * overtakes must read the row anew: many at once would overtake each other until their time limits.
 */
class KeyedQueue {
  readonly #last = new Map<string, Promise<void>>()

  async runInTurn<Reply>(key: string, command: () => Promise<Reply>): Promise<Reply> {
    const before = this.#last.get(key)
    let over!: () => void
    const turn = new Promise<void>((resolve) => {
      over = resolve
    })
    this.#last.set(key, turn)
    await before
    const timer = setTimeout(over, LONGEST_TURN_MS).unref()
    try {
      return await command()
    } finally {
      clearTimeout(timer)
      over()
      if (this.#last.get(key) === turn) this.#last.delete(key)
    }
  }
}
