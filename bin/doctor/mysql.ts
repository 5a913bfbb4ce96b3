import type { MySqlTarget } from '../targets/mysql.js'
import { compareClock, measureLatency } from './everywhere.js'
import {
  createFindingIfBad,
  createGreenFinding,
  createRedFinding,
  createYellowFinding,
  type Finding,
} from './finding.js'

type Settings = Readonly<Record<string, string>>

/** Without the tables, of the server alone. */
export async function examineMySql(target: MySqlTarget): Promise<{ findings: Finding[]; hasTables: boolean }> {
  const settings = {
    ...(await readSettings(target, 'SHOW GLOBAL VARIABLES')),
    ...(await readSettings(
      target,
      "SHOW GLOBAL STATUS WHERE Variable_name IN ('Threads_connected', 'wsrep_cluster_size')",
    )),
  }
  const store = await examineTables(target)
  const hasTables = store.color === 'green'
  const findings = [
    createGreenFinding('version', settings.version ?? 'unknown'),
    examineRole(settings),
    store,
    ...(hasTables ? [await examineSweeping(target)] : []),
    examineDurability(settings),
    examineReplication(settings),
    examineConnections(settings),
    examineIdleTransactions(settings),
    await compareClock(async () => {
      const [row] = await target.rows(
        "SELECT TIMESTAMPDIFF(MICROSECOND, '1970-01-01', UTC_TIMESTAMP(3)) DIV 1000 AS ms",
      )
      return Number(row?.ms)
    }),
    await measureLatency(() => target.rows('SELECT 1')),
  ]
  return { findings, hasTables }
}

async function readSettings(target: MySqlTarget, sql: string): Promise<Settings> {
  const rows = await target.rows(sql)
  return Object.fromEntries(rows.map(({ Variable_name, Value }) => [Variable_name, String(Value)]))
}

/** As a command would find it: version, tables, engine, modes. */
async function examineTables({ store }: MySqlTarget): Promise<Finding> {
  try {
    await store.inspect('once-per-key doctor')
    return createGreenFinding('tables', 'as the store needs them')
  } catch (error) {
    return createRedFinding('tables', (error as Error).message, 'Run `once-per-key migrate`, or do what it says.')
  }
}

function examineRole({ read_only }: Settings): Finding {
  const isReadOnly = read_only !== 'OFF'
  return createFindingIfBad(
    isReadOnly,
    'role',
    isReadOnly ? 'read-only' : 'primary',
    createRedFinding,
    'Give the address of the primary.',
  )
}

/** A row counts as none once it has expired; but as long as nobody sweeps, the table grows. */
async function examineSweeping(target: MySqlTarget): Promise<Finding> {
  const [row] = await target.rows(
    `SELECT due_at = 0 AS never, due_at < (UNIX_TIMESTAMP() - 3600) * 1000 AS late FROM \`${target.prefix}sweeps\` WHERE id = 1`,
  )
  const found = row?.never !== 0 ? 'never swept by itself' : row.late ? 'nobody has swept for an hour' : 'swept'
  const wayOut =
    'A process with `sweeps: true` (the default) sweeps once it has had a request; else call `await store.sweep()` in a job.'
  return createFindingIfBad(row === undefined || Boolean(row.late), 'sweeping', found, createYellowFinding, wayOut)
}

function examineDurability(settings: Settings): Finding {
  const { innodb_flush_log_at_trx_commit: flush, innodb_doublewrite: double, log_bin, sync_binlog } = settings
  const found = `innodb_flush_log_at_trx_commit ${flush}, innodb_doublewrite ${double}, sync_binlog ${sync_binlog}`
  const isWrong = flush !== '1' || double === 'OFF'
  if (isWrong)
    return createRedFinding(
      'durability',
      found,
      'A crash of the machine loses records: set innodb_flush_log_at_trx_commit = 1.',
    )
  const wayOut = 'After a crash of the machine replicas may have more, or less, than this server: set sync_binlog = 1.'
  return createFindingIfBad(log_bin === 'ON' && sync_binlog !== '1', 'durability', found, createYellowFinding, wayOut)
}

function examineReplication(settings: Settings): Finding {
  const { log_bin, wsrep_cluster_size: members = '0' } = settings
  if (Number(members) > 1)
    return createGreenFinding('replication', `a Galera cluster of ${members}: write to one of them`)
  const names = ['rpl_semi_sync_master_enabled', 'rpl_semi_sync_source_enabled']
  const isSynchronous = names.some((name) => settings[name] === 'ON') || settings.group_replication_group_name
  const found = log_bin === 'ON' ? 'a binary log, from which replicas may read' : 'no binary log, so no replicas'
  const wayOut =
    'A failover to an asynchronous replica can lose the last commits, silently. Use semi-synchronous or group replication, or do effects ' +
    'and record in one transaction: both are lost together then.'
  return createFindingIfBad(log_bin === 'ON' && !isSynchronous, 'replication', found, createYellowFinding, wayOut)
}

function examineConnections({ Threads_connected: connected, max_connections: most }: Settings): Finding {
  const share = Number(connected) / Number(most)
  const found = `${connected} of ${most} in use`
  const wayOut = 'Where none is left, claims fail. Use smaller pools.'
  if (share > 0.95) return createRedFinding('connections', found, wayOut)
  return createFindingIfBad(share > 0.8, 'connections', found, createYellowFinding, wayOut)
}

function examineIdleTransactions({ idle_transaction_timeout: idle = '0', wait_timeout }: Settings): Finding {
  const bound = idle === '0' ? Number(wait_timeout) : Number(idle)
  const wayOut =
    'A process that stands still in a transaction keeps its key locked for that long. Set idle_transaction_timeout (MariaDB) or ' +
    'wait_timeout (MySQL) for the application’s sessions, to a minute or so.'
  return createFindingIfBad(bound > 600, 'inactive transactions', `ended after ${bound} s`, createYellowFinding, wayOut)
}
