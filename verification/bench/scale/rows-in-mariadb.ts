import { createConnection, createPool, type RowDataPacket } from 'mysql2/promise'
import { MySqlStore } from '../../../adapters/mysql/index.js'
import { startMariaDb } from '../../../test/support/mariadb-server.js'
import { countPages } from './one-request.js'
import type { Counted, Pages } from './rows.js'

/** Room for all pages, so that a table is filled quickly. */
const SETTINGS = { innodb_buffer_pool_size: '1G', innodb_flush_log_at_trx_commit: '0', tmp_memory_table_size: '256M' }

/** By InnoDB's count of the pages that were asked for in its buffer pool; nothing else uses the server. */
export async function countInMariaDb(steps: readonly number[]): Promise<Counted> {
  const server = await startMariaDb(SETTINGS)
  try {
    const pages: Pages[] = []
    for (const rows of steps) pages.push(await countAmong(rows, await server.createDatabase(`among_${rows}`)))
    const [row] = await server.run('SELECT version() AS version')
    return { database: 'MariaDB', version: String(row?.version).replace(/-.*/, ''), pages }
  } finally {
    await server.close()
  }
}

async function countAmong(rows: number, uri: string): Promise<Pages> {
  const pool = createPool({ uri, connectionLimit: 2 })
  const asking = await createConnection({ uri })
  try {
    const store = new MySqlStore({ pool, sweeps: false })
    await store.migrate()
    await pool.query(filledWith(rows))
    return await countPages(store, async () => {
      const [[row]] = await asking.query<RowDataPacket[]>("SHOW GLOBAL STATUS LIKE 'Innodb_buffer_pool_read_requests'")
      return Number(row?.Value)
    })
  } finally {
    await asking.end()
    await pool.end()
  }
}

/** In the order of the index, so that each page is written once. */
const filledWith = (rows: number) => `
  INSERT INTO once_per_key_records
    (id, name, format, revision, state, token, fingerprint, attempt, uncertain, expires_at, status, head, body)
  SELECT UNHEX(SHA2(CONCAT('r', seq), 256)) AS id, CONCAT('r', seq), 1, 1, 'completed', 't', REPEAT('f', 46), 1, 0, 4102444800000,
    200, '["",[]]', ''
  FROM seq_1_to_${rows} ORDER BY id`
