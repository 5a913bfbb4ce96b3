import { Client } from 'pg'
import { PostgresStore } from '../../adapters/postgres/index.js'
import type { Statement } from '../../adapters/postgres/statements.js'
import { createStatements } from '../../adapters/postgres/statements.js'
import type { PostgresServer } from './postgres-server.js'

/** What one command touches. */
export interface Touched {
  /** Blocks of tables and indexes (8 KiB each), cached or not. */
  readonly blocks: number
  /** How its statements find the rows: 'Index Scan using records_pkey'. */
  readonly scans: readonly string[]
}

/** For a server that is filled quickly: what is written into a table of the same transaction is not logged. */
export const QUICKLY_FILLED = { wal_level: 'minimal', max_wal_senders: '0', max_wal_size: '4GB' }

/** A step of `list` or `sweep` goes through so many blocks of the table. */
export const STEP_BLOCKS = 128

/** What the commands touch in a table of so many records, a tenth of them expired; each in a session that has sent it before. */
export async function touchedAmong(rows: number, server: PostgresServer): Promise<ReadonlyMap<string, Touched>> {
  const connectionString = await server.createDatabase(`among_${rows}`)
  const client = new Client({ connectionString })
  await client.connect()
  try {
    const query = (text: string, values: unknown[]) => client.query(text, values)
    await new PostgresStore({ query, sweeps: false }).migrate()
    await client.query(filledWith(rows))
    await client.query('VACUUM ANALYZE once_per_key.records')
    await client.query(EXPLAINED)
    const touched = new Map<string, Touched>()
    // PL/pgSQL has chosen its plans after five executions.
    for (let turn = 1; turn <= 6; turn++) await eachCommand(client, `warm-up ${turn}`, 2 * STEP_BLOCKS, () => {})
    await eachCommand(client, 'measured', 0, (name, seen) => touched.set(name, seen))
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
    (id, name, format, state, token, fingerprint, attempt, uncertain, expires_at, status, head, body)
  SELECT sha256(convert_to('r' || i, 'UTF8')), 'r' || i, 1, 'completed', 't', repeat('f', 64), 1, false,
    now() + CASE WHEN i % 10 = 0 THEN interval '-1 second' ELSE interval '1 hour' END, 200, '["",[]]', '\\x00'
  FROM generate_series(1, ${rows}) i;
  SET LOCAL maintenance_work_mem = '256MB';
  ALTER TABLE once_per_key.records ADD CONSTRAINT records_pkey PRIMARY KEY (id);
  COMMIT`

/** The plans of the statements inside functions arrive as notices. */
const EXPLAINED = `
  LOAD 'auto_explain';
  SET auto_explain.log_min_duration = 0;
  SET auto_explain.log_nested_statements = on;
  SET auto_explain.log_level = 'notice'`

async function eachCommand(
  client: Client,
  key: string,
  fromBlock: number,
  onSeen: (name: string, touched: Touched) => void,
): Promise<void> {
  const statements = createStatements('once_per_key')
  const answer = { status: 201, statusMessage: '', headers: [], body: Buffer.from('{"id":1}') } as const
  const claim = { token: 't', scope: 's', fingerprint: 'f', leaseMs: 30_000, retentionMs: 60_000 }
  const own = { ...claim, attempt: 1, uncertain: false }
  const [failed, inside] = [`${key}, failed`, `${key}, in a transaction`]
  const begin = (of: string, token = 't') => statements.begin(of, { ...claim, token, unknownOutcome: 'rerun' })
  const send = async (name: string, statement: Statement) => onSeen(name, await touchedBy(client, statement))

  await send('a claim', begin(key))
  await send('a claim in flight', begin(key, 't2'))
  await send('a renewal', statements.renew(key, own))
  await send('a completion', statements.complete(key, { ...own, answer }))
  await send('a replay', begin(key, 't2'))
  await send('inspect', statements.inspect(key))
  await client.query('BEGIN')
  await touchedBy(client, begin(inside))
  await client.query('COMMIT; BEGIN')
  await touchedBy(client, statements.mark('t', 30_000))
  await client.query('SELECT pg_current_xact_id()') // As if something were written.
  await send('a completion in a transaction', statements.completeIn(inside, { ...own, answer }))
  await client.query('COMMIT')
  await touchedBy(client, begin(failed))
  await send('a release', statements.release(failed, { ...own, uncertain: true, failedMs: 1_000 }))
  await send('a take-over', begin(failed, 't2'))
  await send('a step of list', statements.list(fromBlock, STEP_BLOCKS))
  await send('a step of sweep', statements.sweep(fromBlock, STEP_BLOCKS))
}

async function touchedBy(client: Client, { text, values }: Statement): Promise<Touched> {
  const scans = new Set<string>()
  const onNotice = ({ message = '' }) => {
    for (const [, scan = ''] of message.matchAll(/([A-Z][\w ]*Scan(?: using \w+)?) on (?:records|sweeps)\b/g))
      scans.add(scan)
  }
  client.on('notice', onNotice)
  const { rows } = await client.query(`EXPLAIN (ANALYZE, BUFFERS, FORMAT JSON) ${text}`, [...values])
  client.off('notice', onNotice)
  const { Plan: plan } = rows[0]['QUERY PLAN'][0]
  return { blocks: plan['Shared Hit Blocks'] + plan['Shared Read Blocks'], scans: [...scans].sort() }
}
