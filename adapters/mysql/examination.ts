import { ADVICE, MySqlStoreError } from './errors.js'
import { CLOCK_COLUMNS } from './session.js'
import { createStatement, toLiteralSql } from './sql.js'

export interface SessionProperties {
  /** `max_allowed_packet`. */
  readonly maxStatementBytes: number
  /** Whether a locking read of a row that was changed since the transaction's snapshot ends the transaction. */
  readonly isolatesSnapshots: boolean
  /** Whether no statement can see that the session's clock was set. */
  readonly hidesItsClock: boolean
}

/** How long a command waits for a transaction that has locked its row; then it fails, and is retried later. The least there is. */
const WAIT_S = 1

/**
 * Examines a session before its first command, makes it wait for locks no longer than a command may, and return texts as they are:
 * Shift JIS would return another character for a backslash.
 *
 * @throws MySqlStoreError `database_unsuitable`, `schema_missing`; an error of the client.
 */
export async function examineDatabase(
  send: (sql: string) => Promise<unknown>,
  prefix: string,
): Promise<SessionProperties> {
  const session = Object.fromEntries(
    ((await send(VARIABLES)) as { Variable_name: string; Value: string }[]).map(({ Variable_name: name, Value }) => [
      name,
      Value,
    ]),
  )
  const fault =
    session.version === undefined ? UNREADABLE : (findVersionFault(session.version) ?? findSessionFault(session))
  if (fault !== null) throw databaseUnsuitableError(fault)
  const tables = (await send(
    toLiteralSql(selectEngines({ records: `${prefix}records`, sweeps: `${prefix}sweeps` })),
  )) as {
    engine: string
    stood_at: string | null
  }[]
  if (tables.length < 2) {
    const advice = `${ADVICE.schema_missing} ${ADVICE.permission_denied}`
    throw new MySqlStoreError('schema_missing', `There are no ${prefix}records and ${prefix}sweeps. ${advice}`)
  }
  const other = tables.find(({ engine }) => engine !== 'InnoDB')
  if (other !== undefined) {
    throw databaseUnsuitableError(
      `its tables are kept by ${other.engine}, which has no transactions: ALTER TABLE ${prefix}records ENGINE = InnoDB`,
    )
  }
  // Safe updates would refuse the form of DELETE that names an index.
  await send(`SET SESSION innodb_lock_wait_timeout = ${WAIT_S}, sql_safe_updates = 0, character_set_results = utf8mb4`)
  return {
    maxStatementBytes: Number(session.max_allowed_packet),
    isolatesSnapshots: session.innodb_snapshot_isolation === 'ON',
    hidesItsClock: tables.some(({ stood_at }) => stood_at !== null),
  }
}

const UNREADABLE = 'its sessions cannot be read: leave `sql_select_limit` and `character_set_results` at their defaults'

/** MySQL does not know all of them. */
const VARIABLES = `SHOW SESSION VARIABLES WHERE Variable_name IN
  ('version', 'autocommit', 'sql_mode', 'max_allowed_packet', 'innodb_snapshot_isolation', 'tx_isolation', 'transaction_isolation',
  'log_bin', 'binlog_format')`

const selectEngines = createStatement(
  `SELECT CONCAT(ENGINE) AS engine, ${CLOCK_COLUMNS} FROM information_schema.TABLES
  WHERE TABLE_SCHEMA = DATABASE() AND TABLE_NAME IN (CONVERT(:records USING utf8), CONVERT(:sweeps USING utf8))`,
)

function findSessionFault(session: Readonly<Record<string, string | undefined>>): string | null {
  if (session.autocommit !== 'ON') return 'autocommit is off in its sessions, which nobody would commit'
  const { sql_mode: mode = '' } = session
  if (!/STRICT_(ALL|TRANS)_TABLES/.test(mode)) {
    return 'its `sql_mode` is not strict, so it would shorten values silently: add STRICT_TRANS_TABLES'
  }
  const [other] = /\b(ORACLE|EMPTY_STRING_IS_NULL)\b/.exec(mode) ?? []
  if (other !== undefined) return `its \`sql_mode\` has ${other}, which changes what statements mean: remove it`
  if ((session.transaction_isolation ?? session.tx_isolation) === 'READ-UNCOMMITTED') {
    return 'its sessions read what was not committed (READ UNCOMMITTED), so they would replay answers that never were'
  }
  // A replica is read-only: what depends on that would not be done there.
  if (session.log_bin === 'ON' && session.binlog_format === 'STATEMENT') {
    return 'its `binlog_format` is STATEMENT, which replicas carry out in their own way: use ROW or MIXED'
  }
  return null
}

/** "8.0.36-0ubuntu0.22.04.1", "10.11.6-MariaDB-0+deb12u1". */
export function findVersionFault(version: string): string | null {
  const [, major = '0', minor = '0', patch = '0'] = /^(?:5\.5\.5-)?(\d+)\.(\d+)\.(\d+)/.exec(version) ?? []
  const number = Number(major) * 1e6 + Number(minor) * 1e3 + Number(patch)
  const isMariaDb = /mariadb/i.test(version)
  if (number >= (isMariaDb ? 10_006_000 : 8_000_019)) return null
  return `it has version ${version}, and the store needs MySQL 8.0.19 or MariaDB 10.6`
}

function databaseUnsuitableError(because: string): MySqlStoreError {
  return new MySqlStoreError('database_unsuitable', `The database cannot keep records: ${because}.`)
}
