import { PostgresStore } from 'once-per-key/postgres'
import type { PoolClient } from 'pg'
import type { PostgresTarget } from '../targets/postgres.js'
import { compareClock, measureLatency } from './everywhere.js'
import {
  createFindingIfBad,
  createGreenFinding,
  createRedFinding,
  createYellowFinding,
  type Finding,
} from './finding.js'

type Row = Readonly<Record<string, string | null>>

/** As in all statements here, the functions and types are those of Postgres, whatever a session searches first. */
const SETTINGS = `SELECT pg_catalog.current_setting('server_version') AS version, pg_catalog.current_setting('server_version_num') AS version_number,
  pg_catalog.pg_is_in_recovery()::pg_catalog.text AS is_replica, pg_catalog.current_setting('transaction_read_only') AS read_only,
  pg_catalog.current_setting('fsync') AS fsync, pg_catalog.current_setting('full_page_writes') AS full_page_writes,
  pg_catalog.current_setting('synchronous_standby_names') AS synchronous, pg_catalog.current_setting('max_connections') AS most_connections,
  (SELECT pg_catalog.count(*)::pg_catalog.text FROM pg_catalog.pg_stat_activity
    WHERE backend_type OPERATOR(pg_catalog.=) 'client backend') AS connections,
  (SELECT pg_catalog.count(*)::pg_catalog.text FROM pg_catalog.pg_stat_replication) AS replicas,
  pg_catalog.current_setting('idle_in_transaction_session_timeout') AS idle`

/** Without the tables, of the server alone. */
export async function examinePostgres(target: PostgresTarget): Promise<{ findings: Finding[]; hasTables: boolean }> {
  const [settings] = await queryRows(target, SETTINGS)
  const row = settings as Row
  const schema = await examineSchemaRevision(target)
  const hasTables = schema.color !== 'red'
  const findings = [
    examineVersion(row),
    examineRole(row),
    schema,
    ...(hasTables ? [await examineSweeping(target)] : []),
    examineDurability(row),
    examineReplication(row),
    examineConnections(row),
    examineIdleTransactions(row),
    await examinePooler(target),
    await compareClock(async () => {
      const [told] = await queryRows(
        target,
        'SELECT (extract(epoch FROM pg_catalog.clock_timestamp()) OPERATOR(pg_catalog.*) 1000)::pg_catalog.text AS ms',
      )
      return Number(told?.ms)
    }),
    await measureLatency(() => target.pool.query('SELECT 1')),
  ]
  return { findings, hasTables }
}

async function queryRows({ pool }: PostgresTarget, text: string): Promise<Row[]> {
  return (await pool.query<Row>(text)).rows
}

function examineVersion({ version, version_number }: Row): Finding {
  return createFindingIfBad(
    Number(version_number) < 140_000,
    'version',
    `Postgres ${version}`,
    createRedFinding,
    'Use Postgres 14 or later.',
  )
}

function examineRole({ is_replica, read_only }: Row): Finding {
  if (is_replica === 'true') return createRedFinding('role', 'a replica', 'Give the address of the primary.')
  const wayOut = 'Sessions of this role, or database, are read-only: ALTER ROLE … RESET default_transaction_read_only.'
  return createFindingIfBad(
    read_only === 'on',
    'role',
    read_only === 'on' ? 'read-only' : 'primary',
    createRedFinding,
    wayOut,
  )
}

/** The comment on the table that is created last. */
const REVISION_OF = `SELECT pg_catalog.substring(pg_catalog.obj_description('"{schema}".sweeps'::pg_catalog.regclass, 'pg_class'),
  'revision ([0-9]+)') AS revision`

async function examineSchemaRevision(target: PostgresTarget): Promise<Finding> {
  const [, known = ''] = /revision (\d+)/.exec(PostgresStore.schemaSql()) ?? []
  const wayOut = 'Run `once-per-key migrate`, or give the output of `once-per-key schema` to your migration tool.'
  try {
    const [row] = await queryRows(target, REVISION_OF.replace('{schema}', target.schema))
    const found = `schema "${target.schema}" of revision ${row?.revision}, this version knows ${known}`
    return createFindingIfBad(
      Number(row?.revision) < Number(known),
      'schema',
      found,
      createRedFinding,
      `${wayOut} Until then requests get 503.`,
    )
  } catch (error) {
    return createRedFinding('schema', (error as Error).message, wayOut)
  }
}

/** A row counts as none once it has expired; but as long as nobody sweeps, the table grows. */
async function examineSweeping(target: PostgresTarget): Promise<Finding> {
  const [row] = await queryRows(
    target,
    `SELECT (s.due_at OPERATOR(pg_catalog.<) ((extract(epoch FROM pg_catalog.now()) OPERATOR(pg_catalog.-) 3600)
        OPERATOR(pg_catalog.*) 1000))::pg_catalog.text AS late,
      (s.due_at IS NULL)::pg_catalog.text AS never,
      pg_catalog.pg_size_pretty(pg_catalog.pg_total_relation_size('"${target.schema}".records')) AS size
      FROM (SELECT 1) c LEFT JOIN "${target.schema}".sweeps s ON true`,
  )
  const { late, never, size } = row as Row
  const when = never === 'true' ? 'never swept by itself' : late === 'true' ? 'nobody has swept for an hour' : 'swept'
  const wayOut =
    'A process with `sweeps: true` (the default) sweeps once it has had a request; else call `await store.sweep()` in a job.'
  return createFindingIfBad(
    late !== 'false',
    'sweeping',
    `${when}; the table takes ${size}`,
    createYellowFinding,
    wayOut,
  )
}

function examineDurability({ fsync, full_page_writes }: Row): Finding {
  const found = `fsync ${fsync}, full_page_writes ${full_page_writes}`
  return createFindingIfBad(
    fsync !== 'on' || full_page_writes !== 'on',
    'durability',
    found,
    createRedFinding,
    'A crash of the machine loses records: switch both on.',
  )
}

function examineReplication({ replicas, synchronous }: Row): Finding {
  if (replicas === '0')
    return createGreenFinding('replication', 'no replicas are seen, so no failover that loses commits')
  const found = `${replicas} replicas, synchronous_standby_names '${synchronous}'`
  const wayOut =
    'A failover can lose the last commits, silently. Set synchronous_standby_names, or do effects and record in one transaction: both are ' +
    'lost together then.'
  return createFindingIfBad(synchronous === '', 'replication', found, createYellowFinding, wayOut)
}

function examineConnections({ connections, most_connections }: Row): Finding {
  const share = Number(connections) / Number(most_connections)
  const found = `${connections} of ${most_connections} in use`
  const wayOut = 'Where none is left, claims fail. Use smaller pools, or PgBouncer in transaction mode.'
  if (share > 0.95) return createRedFinding('connections', found, wayOut)
  return createFindingIfBad(share > 0.8, 'connections', found, createYellowFinding, wayOut)
}

/**
 * A pooler shows its client another process than the server's own, and one that knows prepared statements gives them names
 * of its own.
 */
async function examinePooler({ pool }: PostgresTarget): Promise<Finding> {
  const client = (await pool.connect()) as PoolClient & { readonly processID?: number | null }
  const name = 'once_per_key_doctor'
  try {
    const own = await client.query<Row>('SELECT pg_catalog.pg_backend_pid()::pg_catalog.text AS process')
    if (own.rows[0]?.process === String(client.processID)) return createGreenFinding('pooler', 'none')
    await client.query('BEGIN')
    const text = 'SELECT name FROM pg_catalog.pg_prepared_statements WHERE name OPERATOR(pg_catalog.=) $1'
    const { rows } = await client.query({ name, text, values: [name] })
    if (rows.length === 0)
      return createGreenFinding('pooler', 'one that knows prepared statements: `prepares: true` works')
    return createGreenFinding('pooler', 'one that does not know prepared statements: leave out `prepares: true`')
  } finally {
    await client.query(`ROLLBACK; DEALLOCATE ALL`).catch(() => {})
    client.release()
  }
}

function examineIdleTransactions({ idle }: Row): Finding {
  const wayOut =
    'Transactions with a record set it for themselves. One of the application’s that is forgotten holds its locks for ever: set it for ' +
    'the application’s role, to a minute or so.'
  return createFindingIfBad(
    idle === '0',
    'idle_in_transaction_session_timeout',
    idle === '0' ? 'none' : `${idle}`,
    createYellowFinding,
    wayOut,
  )
}
