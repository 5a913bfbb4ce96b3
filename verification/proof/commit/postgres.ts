import { setTimeout as pause } from 'node:timers/promises'
import { PostgresStore } from 'once-per-key/postgres'
import { Pool, type PoolClient } from 'pg'
import { startPgBouncer } from '../../../test/support/pgbouncer.js'
import { startPostgres } from '../../../test/support/postgres-server.js'
import { IN_STATEMENT } from '../../../test/support/postgres-statements.js'
import { HASTY } from './claimed-scenes.js'
import type { Dialect, Transactions } from './dialect.js'
import { untilHeld } from './scenery.js'

const OTHERS = "backend_type = 'client backend' AND pid <> pg_backend_pid()"
const OPEN = `SELECT count(*)::int AS number FROM pg_stat_activity WHERE xact_start IS NOT NULL AND ${OTHERS}`

export const postgres: Dialect = {
  async startServer() {
    const server = await startPostgres({ synchronous_commit: 'off' })
    return { ...server, uri: server.url() }
  },
  async startPooler(port) {
    const pooler = await startPgBouncer(port)
    return { uri: pooler.url('postgres'), close: pooler.close }
  },

  open: (connectionString, max, connectMs, first) =>
    new Pool({ connectionString, max, connectionTimeoutMillis: connectMs })
      .on('error', () => {})
      .on('connect', (client) => void (first && client.query(first).catch(() => {}))),
  close: (pool: Pool) => pool.end(),
  createStore: (pool: Pool, transactions?: Pool | Transactions) =>
    new PostgresStore({ pool, transactions, sweeps: false }),
  async query(on: Pool | PoolClient, sql, values = []) {
    let number = 0
    return (
      await on.query(
        sql.replaceAll('?', () => `$${++number}`),
        [...values],
      )
    ).rows
  },
  run: (tx: PoolClient, { text, values }) => tx.query(text, [...values]),
  connect: (pool: Pool) => pool.connect(),
  release: (tx: PoolClient, isGood) => tx.release(!isGood),
  firsts: { journal: 'SET synchronous_commit = on' },

  texts: {
    claim: IN_STATEMENT.begin,
    renew: IN_STATEMENT.renew,
    update: IN_STATEMENT.update,
    complete: IN_STATEMENT.complete,
    fence: IN_STATEMENT.fence,
    mark: IN_STATEMENT.mark,
    take: IN_STATEMENT.enter,
    completion: IN_STATEMENT.completion,
    completed: IN_STATEMENT.completion,
    finish: IN_STATEMENT.finish,
    commit: IN_STATEMENT.finish, // COMMIT is sent with it.
    result: '"done"',
  },
  recordsSql:
    "SELECT split_part(name, ':', 2) AS name, state, attempt::int, status::int, body FROM once_per_key.records",
  expireSql: 'UPDATE once_per_key.records SET expires_at = 1 WHERE name = ?',
  waitingSql: "SELECT count(*)::int AS number FROM pg_locks WHERE locktype = 'advisory' AND NOT granted",
  staysOpenSql: 'SET LOCAL idle_in_transaction_session_timeout = 0',
  writesNothingSql: 'UPDATE effects SET attempt = attempt WHERE name IS NULL',
  keepsKeysOfCommits: false,

  async endSessions(query) {
    await query(`SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE ${OTHERS} AND random() < 0.3`)
  },
  async stopSession(query) {
    const [found] = await query(
      `SELECT pid FROM pg_stat_activity WHERE state = 'idle in transaction' AND ${OTHERS} ORDER BY random() LIMIT 1`,
    )
    return found !== undefined && signal(found.pid, 'SIGSTOP') ? () => void signal(found.pid, 'SIGCONT') : null
  },

  scenes: {
    /**
     * The completion of an owner, which is one statement with its COMMIT, is held back on its way, after its last renewal, until its lease
     * has lapsed and another attempt has taken the key over and written its own effect. Then it arrives, before the other's completion.
     */
    async stale(scenery) {
      const { application, query } = scenery.stage
      const ask = (service: 0 | 1) => () => scenery.ask(service, { order: HASTY })
      const owner = await untilHeld(postgres.texts.completion, application, ask(0))
      const next = await untilHeld(postgres.texts.completion, application, ask(1))
      owner.sendOn()
      await owner.answer
      while ((await query(OPEN))[0].number > 1) await pause(5)
      next.sendOn()
      await next.answer
      await scenery.askUntilTold({ order: HASTY })
      return true
    },
  },
}

/** `false`: it has ended meanwhile. */
function signal(pid: number, name: NodeJS.Signals): boolean {
  try {
    return process.kill(pid, name)
  } catch {
    return false
  }
}
