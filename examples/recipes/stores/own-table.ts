import { createHash } from 'node:crypto'
import { casStore, encodeRecord } from 'once-per-key/core'
import { Pool } from 'pg'

export const pool = new Pool({ connectionString: process.env.DATABASE_URL })

export const store = casStore<string>({
  async read(key) {
    const { rows } = await pool.query(
      `SELECT record, version, ${NOW} FROM (SELECT 1) AS one LEFT JOIN idempotency_records ON id = $1`,
      [hash(key)],
    )
    return rows[0]
  },

  async swap(key, version, record, { expiresAt }) {
    const { rowCount } = await pool.query(version === null ? INSERT : UPDATE, [
      hash(key),
      encodeRecord(record),
      new Date(expiresAt),
      version ?? key,
    ])
    return rowCount === 1
  },

  async remove(key, version) {
    const { rowCount } = await pool.query('DELETE FROM idempotency_records WHERE id = $1 AND version = $2', [
      hash(key),
      version,
    ])
    return rowCount === 1
  },

  async list(from) {
    const { rows } = await pool.query(
      `SELECT encode(id, 'hex') AS id, key, record, ${NOW} FROM idempotency_records
        WHERE id > decode($1, 'hex') ORDER BY id LIMIT ${PAGE}`,
      [from ?? ''],
    )
    return { records: rows, next: rows.length < PAGE ? null : rows.at(-1).id, now: rows[0]?.now }
  },
})

const INSERT = `
  INSERT INTO idempotency_records (id, record, expires_at, key) VALUES ($1, $2, $3, $4) ON CONFLICT DO NOTHING`
const UPDATE = `
  UPDATE idempotency_records SET record = $2, expires_at = $3, version = gen_random_uuid()
  WHERE id = $1 AND version = $4`
/** The clock of the database, in milliseconds. */
const NOW = 'floor(extract(epoch FROM statement_timestamp()) * 1000)::float8 AS now'
const PAGE = 1000

/** An entry of an index may have 2,704 bytes, and a key may have more. */
function hash(key: string): Buffer {
  return createHash('sha256').update(key).digest()
}
