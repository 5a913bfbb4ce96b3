import {
  type Answer,
  type BeginReply,
  type Claim,
  type CommandReply,
  type Forgetting,
  type IdempotencyRecord,
  machine,
  type Ownership,
  type Resolution,
  type StepChange,
  type Unclaimed,
} from '../../src/core/index.js'
import { KeyedQueue } from './keyed-queue.js'
import { isSameVersion, type RecordSnapshot, type StoredRecord } from './record-columns.js'
import type { CommandKind, SqlRecordTable } from './record-table.js'
import { areStepsWithinLimit } from './steps-column.js'

/** A command of the machine, on a record and the database's time. */
type Command<Reply> = (record: StoredRecord | null, now: number) => machine.Change<Reply>

const MOST_TURNS = 20
const CONTENDED = 'The record changed repeatedly while this command tried to change it.'

/**
 * The commands of the machine on the rows of a table. A row is read plainly, the machine decides, and the row is written only if it is
 * still what was read; otherwise it is read again. A command that changes nothing waits for no other one, and none leaves a transaction open.
 */
export class RowStore {
  /** @internal */
  protected readonly table: SqlRecordTable
  readonly #steps = new KeyedQueue()

  /** @internal */
  constructor(table: SqlRecordTable) {
    this.table = table
  }

  /** A new key takes one statement. A row that a transaction holds means that the key is in flight: it may be completing it. */
  async begin(key: string, claim: Claim): Promise<BeginReply> {
    const table = this.table
    let found: RecordSnapshot | undefined
    try {
      for (let turn = 0; turn < MOST_TURNS; turn++) {
        const claimed = turn === 0 ? await table.claim(key, claim) : await table.read(key, claim.fingerprint, 'claim')
        if (claimed === 'inserted') return machine.begin(null, claim, 0).reply
        found = claimed
        const { record, reply } = machine.begin(found.record, claim, found.now)
        if (isLapsed(found) && isAboutLapse(reply)) {
          const last = await table.readUnlessRowLocked(key)
          if (last === 'locked') return createInFlightReply(found, claim)
          if (!isSameVersion(last.version, found.version)) continue
        }
        if (record === found.record || (await table.writeIfUnchanged(key, record, found.version, 'claim'))) return reply
      }
    } catch (error) {
      if (table.isLocked(error)) return createInFlightReply(found, claim)
      throw error
    }
    throw new table.StoreError('contended', CONTENDED)
  }

  async renew(key: string, own: Ownership & { readonly leaseMs: number }): Promise<CommandReply> {
    if (await this.table.renew(key, own)) return { ok: true }
    return this.#change(key, (record, now) => machine.renew(record, own, now), own.fingerprint)
  }

  async complete(key: string, own: Ownership & { readonly answer: Answer }): Promise<CommandReply> {
    if (await this.table.complete(key, own)) return { ok: true }
    return this.#change(key, (record, now) => machine.complete(record, own, now), own.fingerprint)
  }

  async release(key: string, own: Ownership & { readonly failedMs: number }): Promise<CommandReply> {
    return this.#change(key, (record, now) => machine.release(record, own, now), own.fingerprint, 'release')
  }

  /** A result for which there is no room is done, and not kept. */
  async step(key: string, own: Ownership & StepChange & { readonly leaseMs: number }): Promise<CommandReply> {
    const command: Command<CommandReply> = (record, now) => {
      const change = machine.step(record, own, now)
      if (own.result === null || areStepsWithinLimit(change.record, this.table.database.maxStatementBytes))
        return change
      return machine.step(record, { ...own, result: null }, now)
    }
    return this.#steps.runInTurn(key, () => this.#change(key, command, own.fingerprint))
  }

  async inspect(key: string): Promise<IdempotencyRecord | null> {
    const { record, now } = await this.table.read(key)
    return machine.inspect(record, now).reply
  }

  async resolve(key: string, resolution: Resolution): Promise<CommandReply> {
    return this.#change(key, (record, now) => machine.resolve(record, resolution, now))
  }

  async forget(key: string, forgetting: Forgetting): Promise<CommandReply> {
    return this.#change(key, (record, now) => machine.forget(record, forgetting, now))
  }

  /** The commands of runs whose transactions take their keys, each outside of a transaction. @internal */
  protected createUnclaimedCommands(): Unclaimed {
    const table = this.table
    return {
      look: async (key, looking) => {
        const found = await table.read(key, looking.fingerprint, 'claim')
        const looked = machine.look(found.record, looking, found.now)
        // It would be in the way of the row that a transaction inserts. Whoever has locked it writes a record over it.
        if (found.record === null && found.version !== null) {
          await table.resolveLockedAs(table.writeIfUnchanged(key, null, found.version, 'claim'), false)
        }
        if (!isLapsed(found) || looked.acquired || looked.record.state !== 'in-flight') return looked
        if ((await table.readUnlessRowLocked(key)) !== 'locked') return looked
        return { acquired: false, record: { ...looked.record, leaseRemainingMs: 1 } }
      },

      async fence(key, { token }) {
        const found = await table.readUnlessKeyLocked(key)
        if (found === 'locked') return { isTaken: true, record: null, isOwn: false }
        const { record, now } = found
        return { isTaken: false, record: machine.peek(record, now).reply, isOwn: record?.token === token }
      },

      withhold: async (key, own) => {
        const taken = { ok: false, record: null } as const
        if ((await table.readUnlessKeyLocked(key)) === 'locked') return taken
        const changed = this.#change(key, (record, now) => machine.withhold(record, own, now), own.fingerprint)
        return table.resolveLockedAs(changed, taken)
      },
    }
  }

  async #change<Reply>(
    key: string,
    command: Command<Reply>,
    fingerprint?: string,
    kind: CommandKind = 'command',
  ): Promise<Reply> {
    for (let turn = 0; turn < MOST_TURNS; turn++) {
      const found = await this.table.read(key, fingerprint, kind)
      const { record, reply } = command(found.record, found.now)
      if (record === found.record) return reply
      if (await this.table.writeIfUnchanged(key, record, found.version, kind)) return reply
    }
    throw new this.table.StoreError('contended', CONTENDED)
  }
}

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
