import { createPool, type Pool, type PoolConnection, type RowDataPacket } from 'mysql2/promise'
import { MySqlStore } from 'once-per-key/mysql'
import { startMariaDb } from '../../../test/support/mariadb-server.js'
import type { Dialect, Transactions } from './dialect.js'
import { untilHeld } from './scenery.js'

/** By the primary key: without an index all rows would be locked. */
const IS_NAMED = 'id = UNHEX(SHA2(?, 256))'
const COMPLETED = "state = _binary'completed'"

export const mysql: Dialect = {
  async startServer() {
    // So that a time-out of a lock does the most that it can.
    const server = await startMariaDb({ innodb_rollback_on_timeout: 'ON' })
    return { ...server, uri: await server.createDatabase('orders') }
  },

  open(uri, connectionLimit, connectTimeout, first) {
    const pool = createPool({ uri, connectionLimit, connectTimeout })
    if (first !== undefined) pool.on('connection', (connection) => void connection.query(first))
    return pool
  },
  close: (pool: Pool) => pool.end(),
  createStore: (pool: Pool, transactions?: Pool | Transactions) =>
    new MySqlStore({ pool, transactions, sweeps: false }),
  query: async (on: Pool | PoolConnection, sql, values = []) =>
    (await on.query<RowDataPacket[]>(sql, [...values] as string[]))[0],
  run: (tx: PoolConnection, { text, values }) => tx.query(text, [...values] as string[]),
  connect: (pool: Pool) => pool.getConnection(),
  release: (tx: PoolConnection, isGood) => (isGood ? tx.release() : tx.destroy()),
  firsts: { application: 'SET SESSION innodb_lock_wait_timeout = 1' },

  texts: {
    claim: 'INSERT INTO `once_per_key_records`',
    renew: 'SET revision = revision + 1, lease_until',
    update: 'SET format =',
    complete: COMPLETED,
    fence: 'NOWAIT',
    mark: 'SAVEPOINT once_per_key',
    take: 'INSERT INTO `once_per_key_records`',
    completion: 'LIMIT 1 FOR UPDATE',
    completed: COMPLETED,
    finish: COMPLETED,
    commit: 'COMMIT',
    result: Buffer.from('"done"').toString('hex'),
  },
  recordsSql: `SELECT SUBSTRING_INDEX(CONVERT(name USING utf8mb4), ':', -1) AS name, CONVERT(state USING utf8mb4) AS state,
    attempt, status, body FROM once_per_key_records`,
  expireSql: `UPDATE once_per_key_records SET expires_at = 1 WHERE ${IS_NAMED}`,
  waitingSql: "SELECT COUNT(*) AS number FROM information_schema.innodb_trx WHERE trx_state = 'LOCK WAIT'",
  writesNothingSql: 'SELECT 1', // An UPDATE that finds nothing counts as a write.
  keepsKeysOfCommits: true,

  async endSessions(query) {
    const sessions = await query(
      'SELECT id FROM information_schema.processlist WHERE db IS NOT NULL AND id <> CONNECTION_ID() AND RAND() < 0.3',
    )
    // It may have ended meanwhile.
    for (const { id } of sessions) await query(`KILL CONNECTION ${id}`).catch(() => {})
  },
  /** Sessions are threads of one process. */
  async stopSession(query, server) {
    const open = await query('SELECT 1 FROM information_schema.innodb_trx')
    if (open.length === 0) return null
    server.signal('SIGSTOP')
    return () => server.signal('SIGCONT')
  },

  scenes: {
    /** A time-out has rolled its transaction back, and the lock is gone before it asks again: its client commits each statement by itself. */
    async 'is-rolled-back-by-a-time-out'(scenery) {
      const { application, commands, operator, query } = scenery.stage
      await scenery.ask(0, { act: 'declines', claims: true })
      const late = await untilHeld(mysql.texts.fence, application, () => scenery.ask(1, { client: 'hasty' }))
      const other = await mysql.connect(operator)
      await mysql.query(other, 'START TRANSACTION')
      await mysql.query(other, `SELECT 1 FROM once_per_key_records WHERE ${IS_NAMED} FOR UPDATE`, [scenery.record])
      const asking = commands.hold(mysql.texts.fence)
      late.sendOn()
      const sendOn = await Promise.race([asking, late.answer.then(() => null)])
      commands.disarm()
      await mysql.query(other, 'ROLLBACK')
      mysql.release(other, true)
      sendOn?.()
      const { id } = await late.answer
      const left = await query('SELECT 1 FROM effects WHERE name = ?', [scenery.key])
      scenery.expect('S3', id !== null || left.length === 0, 'work runs behind the end of its transaction')
      await scenery.askUntilTold()
      return sendOn !== null
    },

    /** The application has left a transaction open on a connection of the store, in which a command would be rolled back. */
    async 'commits-no-command'(scenery) {
      const { status } = await scenery.ask(0, { act: 'acts outside', claims: true, client: 'careless' })
      scenery.expect('S3', status !== 201, 'a success whose record was not committed is sent')
      scenery.forget()
      return true
    },
  },
}
