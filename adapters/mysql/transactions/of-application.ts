import { machine, type Transactions, type Unclaimed } from '../../../src/core/index.js'
import type { Database } from '../connection/database.js'
import { isConflict, isLocked, MySqlStoreError } from '../errors.js'
import type { Records } from '../rows/records.js'
import type { Statements } from '../rows/statements.js'
import { type AnyTransactions, type OpenedTransactions, opened } from './clients.js'
import { InTransaction } from './in-transaction.js'

/** The application's transactions, with the statements of a run inside them. */
export class OfApplication extends InTransaction<unknown> implements Transactions<unknown, unknown> {
  readonly #client: OpenedTransactions<unknown, unknown>
  readonly #database: Database
  /** Of the application's sessions, as the first transaction tells; `undefined`: there was none. */
  #isolatesSnapshots: boolean | undefined

  constructor(given: AnyTransactions, database: Database, statements: Statements, records: Records) {
    const client = opened(given)
    super((tx, statement) => client.run(tx, statement), database, statements, records)
    this.#client = client
    this.#database = database
  }

  transaction(work: (tx: unknown) => Promise<void>, options: unknown): Promise<unknown> {
    return this.#client.transaction((tx) => this.during(tx, () => work(tx)), options)
  }

  /** Nothing bounds the inactivity of a session: both servers can only bound all of a session's transactions. */
  async mark(tx: unknown, token: string): Promise<boolean> {
    await this.markAs(tx, token)
    this.#isolatesSnapshots ??= await this.isolatesSnapshots(tx)
    return !this.needsRenewal(undefined)
  }

  sessionEnd(tx: unknown): Promise<void> | undefined {
    return this.#client.sessionEnd?.(tx)
  }

  /**
   * At any level of isolation a locking read reads what was committed last, so renewals do no harm; unless the server ends a
   * transaction that locks a row which has changed since its snapshot (`innodb_snapshot_isolation`, MariaDB's default from 11.6 on).
   */
  needsRenewal(_options: unknown): boolean {
    return this.#isolatesSnapshots !== false || this.#database.last?.isolatesSnapshots !== false
  }

  /** A deadlock, which a Galera cluster reports at COMMIT, has rolled it back. Whatever else, the record is asked. */
  leavesOpen(error: unknown): boolean {
    return error instanceof MySqlStoreError ? error.code === 'connection_lost' : !isConflict(error)
  }
}

/** The commands of runs whose transactions take their keys, each outside of a transaction. */
export function unclaimedOn(records: Records): Unclaimed {
  return {
    async look(key, looking) {
      const { record, now } = await records.find(key, looking.fingerprint)
      const looked = machine.look(record, looking, now)
      const isLapsed = record?.state === 'in-flight' && now >= record.leaseUntil
      if (!isLapsed || looked.acquired || looked.record.state !== 'in-flight') return looked
      if ((await records.findLast(key)) !== 'locked') return looked
      return { acquired: false, record: { ...looked.record, leaseRemainingMs: 1 } }
    },

    async fence(key, { token }) {
      const found = await records.findLast(key)
      if (found === 'locked') return { isTaken: true, record: null, isOwn: false }
      const { record, now } = found
      return { isTaken: false, record: machine.peek(record, now).reply, isOwn: record?.token === token }
    },

    async withhold(key, own) {
      try {
        if ((await records.findLast(key)) === 'locked') return { ok: false, record: null }
        return await records.change(key, (record, now) => machine.withhold(record, own, now), own.fingerprint)
      } catch (error) {
        if (isLocked(error)) return { ok: false, record: null }
        throw error
      }
    },
  }
}
