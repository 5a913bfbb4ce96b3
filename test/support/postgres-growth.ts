import { Client } from 'pg'
import { PostgresStore } from '../../adapters/postgres/index.js'
import { createRecordStatements } from '../../adapters/postgres/record-statements.js'
import type { Statement } from '../../adapters/postgres/sql.js'
import { createTransactionStatements } from '../../adapters/postgres/transaction-statements.js'
import { computeRecordId } from '../../adapters/sql/record-table.js'
import type { PostgresServer } from './postgres-server.js'

/** What one command touches. */
export interface Touched {
  /** Blocks of tables and indexes (8 KiB each), cached or not. */
  readonly blocks: number
  /** How it finds the rows: 'Index Scan using records_pkey', or 'Conflict on records_pkey' of an INSERT. */
  readonly scans: readonly string[]
}

/** For a server that is filled quickly: what is written into a table of the same transaction is not logged. */
export const QUICKLY_FILLED = { wal_level: 'minimal', max_wal_senders: '0', max_wal_size: '4GB' }

/** A step of `list` or `sweep` goes through so many blocks of the table. */
export const STEP_BLOCKS = 128

/** What the statements of commands touch in a table of so many records, a tenth of them expired; each in a session that has sent it before. */
export async function touchedAmong(rows: number, server: PostgresServer): Promise<ReadonlyMap<string, Touched>> {
  const connectionString = await server.createDatabase(`among_${rows}`)
  const client = new Client({ connectionString })
  await client.connect()
  try {
    const query = (text: string, values: unknown[]) => client.query(text, values)
    await new PostgresStore({ query, sweeps: false }).migrate()
    await client.query(filledWith(rows))
    await client.query('VACUUM ANALYZE once_per_key.records')
    const touched = new Map<string, Touched>()
    await eachStatement(client, 'warm-up', 2 * STEP_BLOCKS, () => {})
    await eachStatement(client, 'measured', 0, (name, seen) => touched.set(name, seen))
    return touched
  } finally {
    await client.end()
  }
}

const filledWith = (rows: number) => `
  BEGIN;
  TRUNCATE once_per_key.records;
  ALTER TABLE once_per_key.records DROP CONSTRAINT records_pkey;
  INSERT INTO once_per_key.records
    (id, name, format, revision, state, token, fingerprint, attempt, uncertain, expires_at, status, head, body)
  SELECT sha256(convert_to('r' || i, 'UTF8')), 'r' || i, 1, 1, 'completed', 't', repeat('f', 64), 1, 0,
    CASE WHEN i % 10 = 0 THEN 1 ELSE 4102444800000 END, 200, '["",[]]', '\\x00'
  FROM generate_series(1, ${rows}) i;
  SET LOCAL maintenance_work_mem = '256MB';
  ALTER TABLE once_per_key.records ADD CONSTRAINT records_pkey PRIMARY KEY (id);
  COMMIT`

const OWN = { token: 't', retentionMs: 60_000 }
const CLAIM = { ...OWN, fingerprint: 'f', leaseMs: 30_000 }
const ANSWER = { status: 201, head: '["",[]]', body: Buffer.from('{"id":1}') }
const FAILED = {
  ...{ state: 'failed', token: 't', fingerprint: 'f', attempt: 1, uncertain: 1, lease_until: null },
  steps: null,
}

async function eachStatement(
  client: Client,
  name: string,
  fromBlock: number,
  onSeen: (name: string, touched: Touched) => void,
): Promise<void> {
  const records = createRecordStatements('once_per_key')
  const inside = createTransactionStatements('once_per_key')
  const id = computeRecordId(name)
  const stretch = { first: `(${fromBlock},0)`, beyond: `(${fromBlock + STEP_BLOCKS},0)` }
  const see = async (what: string, statement: Statement) => onSeen(what, await touchedBy(client, statement))

  await see('a claim', records.claim({ id, name, ...CLAIM }))
  await see('a claim in flight', records.claim({ id, name, ...CLAIM, token: 't2' }))
  await see('a renewal', records.renew({ id, ...CLAIM }))
  await client.query('BEGIN')
  await see('a completion', records.complete({ id, ...OWN, ...ANSWER }))
  await see('a replay', records.claim({ id, name, ...CLAIM, token: 't2' }))
  await client.query('ROLLBACK; BEGIN')
  await touchedBy(client, inside.mark({ token: 't', idleMs: 30_000 }))
  await client.query('SELECT pg_current_xact_id()') // As if something were written.
  await see('a completion in a transaction', inside.complete({ id, ...OWN, ...ANSWER }))
  await client.query('ROLLBACK')
  await see('a read', records.read({ id }))
  const { rows } = await client.query('SELECT revision, expires_at FROM once_per_key.records WHERE id = $1', [id])
  const [{ revision, expires_at }] = rows
  const unchanged = { id, seen: 't', revision, expiresAt: expires_at }
  await see('a release', records.update({ ...unchanged, ...FAILED, expires_at, status: null, head: null, body: null }))
  await client.query('BEGIN; SET LOCAL enable_seqscan = off') // As walks are sent.
  await see('a step of list', records.list(stretch))
  await see('a step of sweep', records.sweep(stretch))
  await client.query('COMMIT')
}

interface Plan {
  readonly 'Node Type': string
  readonly 'Index Name'?: string
  readonly 'Conflict Arbiter Indexes'?: readonly string[]
  readonly 'Relation Name'?: string
  readonly 'Actual Loops': number
  readonly 'Shared Hit Blocks': number
  readonly 'Shared Read Blocks': number
  readonly Plans?: readonly Plan[]
}

async function touchedBy(client: Client, { text, values }: Statement): Promise<Touched> {
  const { rows } = await client.query(`EXPLAIN (ANALYZE, BUFFERS, FORMAT JSON) ${text}`, [...values])
  const plan: Plan = rows[0]['QUERY PLAN'][0].Plan
  return {
    blocks: plan['Shared Hit Blocks'] + plan['Shared Read Blocks'],
    scans: [...new Set(listScans(plan))].sort(),
  }
}

/** Of the parts of the plan that were carried out. */
function listScans(plan: Plan): string[] {
  if (plan['Actual Loops'] === 0) return []
  const { 'Node Type': type, 'Index Name': index, 'Conflict Arbiter Indexes': arbiters = [] } = plan
  const isScan = plan['Relation Name'] !== undefined && type.endsWith('Scan')
  return [
    ...(isScan ? [index === undefined ? type : `${type} using ${index}`] : []),
    ...arbiters.map((each) => `Conflict on ${each}`),
    ...(plan.Plans ?? []).flatMap(listScans),
  ]
}
