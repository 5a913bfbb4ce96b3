import { expect, test } from 'vitest'
import { createTableStatements } from '../../../adapters/sqlite/table.js'
import { A_DRIVER } from './drivers.js'
import { openStore } from './open-store.js'

test('in a table of a hundred thousand records, each statement searches by an index', {
  timeout: 120_000,
}, async () => {
  const { database, store, query } = openStore(A_DRIVER)
  await store.migrate()
  // ANALYZE: so that the planner knows how large the table is.
  database.exec(`
    WITH RECURSIVE numbers (i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM numbers WHERE i < 100000)
    INSERT INTO once_per_key_records
      (key, format, state, token, fingerprint, attempt, uncertain, expires_at, status, head, body)
    SELECT 'r' || i, 1, 'completed', 't', 'f', 1, 0, 1000 + i, 200, '["",[]]', zeroblob(10) FROM numbers;
    ANALYZE`)
  const { read, list, sweep } = createTableStatements('once_per_key_')
  const planOf = (sql: string) =>
    query(`EXPLAIN QUERY PLAN ${sql.replaceAll('?', '1')}`).map(({ detail }) => `${detail}`.replace('main.', ''))
  expect(planOf(read)).toEqual([
    'SEARCH once_per_key_records USING INDEX sqlite_autoindex_once_per_key_records_1 (key=?)',
  ])
  expect(planOf(list)).toEqual(['SEARCH once_per_key_records USING INTEGER PRIMARY KEY (rowid>?)'])
  expect(planOf(sweep)).toEqual([
    'SEARCH once_per_key_records USING INTEGER PRIMARY KEY (rowid=?)',
    'LIST SUBQUERY 1',
    expect.stringMatching(
      /^SEARCH once_per_key_records USING (COVERING )?INDEX once_per_key_records_expires_at \(expires_at<\?\)$/,
    ),
  ])
})
