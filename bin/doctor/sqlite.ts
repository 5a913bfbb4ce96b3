import { statfs } from 'node:fs/promises'
import { dirname, resolve } from 'node:path'
import { formatBytes } from '../printed.js'
import type { SqliteTarget } from '../targets/sqlite.js'
import { measureLatency } from './everywhere.js'
import {
  createFindingIfBad,
  createGreenFinding,
  createRedFinding,
  createYellowFinding,
  type Finding,
} from './finding.js'

const LEAST_FREE_BYTES = 2 ** 30
const MOST_EXPIRED = 10_000

export async function examineSqlite(target: SqliteTarget): Promise<{ findings: Finding[]; hasTables: boolean }> {
  const tables = get(
    target,
    'SELECT count(*) AS found FROM main.sqlite_schema WHERE name = ?',
    `${target.prefix}records`,
  )
  const hasTables = tables === 1
  const findings = [
    createGreenFinding('version', `SQLite ${get(target, 'SELECT sqlite_version() AS found')}`),
    createFindingIfBad(
      !hasTables,
      'tables',
      hasTables ? 'there' : 'missing',
      createRedFinding,
      'Run `once-per-key migrate`, or start the application.',
    ),
    examineJournalMode(target),
    examineIntegrity(target),
    ...(hasTables ? [examineSweeping(target)] : []),
    await examineDiskSpace(target),
    await measureLatency(async () => get(target, 'SELECT count(*) AS found FROM main.sqlite_schema')),
  ]
  return { findings, hasTables }
}

function get({ database }: SqliteTarget, sql: string, ...values: string[]): unknown {
  return (database.prepare(sql).get(...values) as { readonly found: unknown }).found
}

function examineJournalMode(target: SqliteTarget): Finding {
  const mode = get(target, 'SELECT journal_mode AS found FROM pragma_journal_mode()')
  const wayOut =
    'The store switches to WAL with its first command, unless something prevents it: a network file system does.'
  return createFindingIfBad(mode !== 'wal', 'journal', String(mode), createYellowFinding, wayOut)
}

function examineIntegrity(target: SqliteTarget): Finding {
  const said = String(get(target, 'SELECT quick_check AS found FROM pragma_quick_check LIMIT 1'))
  return createFindingIfBad(
    said !== 'ok',
    'file',
    said === 'ok' ? 'intact' : said,
    createRedFinding,
    'Restore it from a backup: see https://sqlite.org/recovery.html.',
  )
}

function examineSweeping(target: SqliteTarget): Finding {
  const sql = `SELECT count(*) AS found FROM main."${target.prefix}records" WHERE expires_at <= ${Date.now()}`
  const expired = Number(get(target, sql))
  const wayOut =
    'Each claim removes some, unless the store has `sweeps: false`: then call `await store.sweep()` in a job.'
  return createFindingIfBad(expired > MOST_EXPIRED, 'sweeping', `${expired} expired rows`, createYellowFinding, wayOut)
}

async function examineDiskSpace({ file }: SqliteTarget): Promise<Finding> {
  const { bavail, bsize } = await statfs(dirname(resolve(file)))
  const free = bavail * bsize
  return createFindingIfBad(
    free < LEAST_FREE_BYTES,
    'disk',
    `${formatBytes(free)} free`,
    createYellowFinding,
    'Where the disk is full, keys get 503: make room.',
  )
}
