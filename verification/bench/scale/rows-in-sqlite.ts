import { mkdtempSync, readFileSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { SqliteStore } from '../../../adapters/sqlite/index.js'
import { A_DRIVER, openDatabase } from '../../../test/adapters/sqlite/drivers.js'
import { countPages } from './one-request.js'
import type { Counted, Pages } from './rows.js'

/**
 * SQLite counts no pages for its drivers, but reads each page that is not in its cache, and Linux counts what a process reads. The cache
 * is emptied before each command, since another connection has written in the meantime.
 */
export async function countInSqlite(steps: readonly number[]): Promise<Counted> {
  const pages: Pages[] = []
  for (const rows of steps) {
    const folder = mkdtempSync(join(tmpdir(), 'once-per-key-rows-'))
    try {
      pages.push(await countAmong(rows, join(folder, 'records.db')))
    } finally {
      rmSync(folder, { recursive: true })
    }
  }
  return { database: 'SQLite', version: sqliteVersion(), pages }
}

function sqliteVersion(): string {
  const database = openDatabase(A_DRIVER, ':memory:')
  const { version } = database.prepare('SELECT sqlite_version() AS version').get() as { readonly version: string }
  database.close()
  return version
}

async function countAmong(rows: number, file: string): Promise<Pages> {
  const [database, other] = [openDatabase(A_DRIVER, file), openDatabase(A_DRIVER, file)]
  try {
    const store = new SqliteStore({ database, sweeps: false })
    await store.migrate()
    database.exec(filledWith(rows))
    database.exec('PRAGMA wal_checkpoint(TRUNCATE); PRAGMA wal_autocheckpoint = 0')
    const { page_size: pageSize } = database.prepare('PRAGMA page_size').get() as { page_size: number }
    other.exec('PRAGMA wal_autocheckpoint = 0; CREATE TABLE another (value INTEGER)')
    const emptyCache = () => other.exec('INSERT INTO another VALUES (1)')
    return await countPages(store, () => Math.floor(countBytesRead() / pageSize), emptyCache)
  } finally {
    database.close()
    other.close()
  }
}

/** proc(5): "rchar: characters read", by system calls, whether from a disk or not. */
function countBytesRead(): number {
  return Number(/^rchar: (\d+)$/m.exec(readFileSync('/proc/self/io', 'latin1'))?.[1])
}

const filledWith = (rows: number) => `
  PRAGMA cache_size = -262144;
  BEGIN;
  INSERT INTO once_per_key_records
    (key, format, state, token, fingerprint, attempt, uncertain, expires_at, status, head, body)
  WITH RECURSIVE counted (i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM counted WHERE i < ${rows})
  SELECT lower(hex(randomblob(16))) AS key, 1, 'completed', 't', '${'f'.repeat(46)}', 1, 0, 4102444800000 + i, 200, '["",[]]', x''
  FROM counted ORDER BY key;
  COMMIT`
