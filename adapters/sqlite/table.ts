import { buildFormatCheckSql, RECORD_COLUMNS } from '../sql/record-columns.js'

/** The version of the tables. Tables of another version are not touched. */
export const SCHEMA_VERSION = 1

/** The qualified names of the tables, for SQL: in the opened file, not in an attached one. */
function buildTableNames(prefix: string) {
  return {
    records: `main."${prefix}records"`,
    schema: `main."${prefix}schema"`,
  } as const
}

/**
 * The records, and a row with the version of the tables. The bytes are in the last columns, so that reading a row without them
 * does not read their pages. In every format, a row stops being a record once `expires_at` has passed; times are
 * milliseconds of the store's clock. The checks are those of format 1, and apply to every writer.
 */
export function schemaSql(prefix: string): string {
  const { records, schema } = buildTableNames(prefix)
  return `
CREATE TABLE ${records} (
  id INTEGER PRIMARY KEY,
  key TEXT NOT NULL UNIQUE,
  format INTEGER NOT NULL,
  state TEXT NOT NULL,
  token TEXT NOT NULL,
  fingerprint TEXT,
  attempt INTEGER NOT NULL,
  uncertain INTEGER NOT NULL,
  lease_until INTEGER,
  expires_at INTEGER NOT NULL,
  status INTEGER,
  head TEXT,
  body BLOB,
  steps BLOB,
  CONSTRAINT format_1 ${buildFormatCheckSql()}
) STRICT;
CREATE INDEX main."${prefix}records_expires_at" ON "${prefix}records" (expires_at);
CREATE TABLE ${schema} (id INTEGER PRIMARY KEY CHECK (id = 1), version INTEGER NOT NULL) STRICT;
INSERT INTO ${schema} (id, version) VALUES (1, ${SCHEMA_VERSION});
`
}

const WRITTEN = ['format', ...RECORD_COLUMNS]

/** Read as REAL: at an integer that no number can be, `node:sqlite` would stop, and hide the other rows. */
const buildRealColumnSql = (column: string) => `CAST(${column} AS REAL) AS ${column}`

const READ = `key AS name, state, token, fingerprint, ${['format', 'attempt', 'uncertain', 'lease_until', 'expires_at'].map(buildRealColumnSql)}`

/** The statements on the tables; each is prepared on first use. */
export function createTableStatements(prefix: string) {
  const { records, schema } = buildTableNames(prefix)
  const kept = WRITTEN.map((column) => `${column} = excluded.${column}`).join(', ')
  return {
    version: `SELECT version FROM ${schema}`,
    read: `SELECT ${READ}, ${buildRealColumnSql('status')}, head, body, steps FROM ${records} WHERE key = ?`,
    write:
      `INSERT INTO ${records} (key, ${WRITTEN.join(', ')}) VALUES (?${', ?'.repeat(WRITTEN.length)}) ` +
      `ON CONFLICT (key) DO UPDATE SET ${kept}`,
    /** Without the answer: records with an unknown outcome have none. */
    list: `SELECT id, ${READ} FROM ${records} WHERE id > ? ORDER BY id LIMIT ?`,
    /** The same of some keys, in their order; of an answer, whether there is a body, and if not, its head. */
    listScope:
      `SELECT ${READ}, ${buildRealColumnSql('status')}, ` +
      `CASE WHEN body IS NULL THEN head ELSE '["",[]]' END AS head, CASE WHEN body IS NOT NULL THEN x'' END AS body ` +
      `FROM ${records} WHERE key > ? AND key < ? ORDER BY key LIMIT ?`,
    remove: `DELETE FROM ${records} WHERE key = ?`,
    sweep: `DELETE FROM ${records} WHERE id IN (SELECT id FROM ${records} WHERE expires_at <= ? ORDER BY expires_at LIMIT ?)`,
  } as const
}
