import type { Buffer } from 'node:buffer'
import { createHash } from 'node:crypto'
import { toBuffer } from '../sql/row.js'
import { parseTemplate, type SqlValue, type SqlValues } from '../sql/statement.js'

/** A statement for a client, in two forms: a text with `$1`, `$2` …, and the pieces of a tagged template. */
export interface Statement {
  readonly text: string
  readonly values: readonly StatementValue[]
  /** Of this text alone, for a client that names its prepared statements. At most 63 bytes. */
  readonly name: string
  /** As a tagged template receives them: `strings[0]`, the first value, `strings[1]` … */
  readonly strings: TemplateStringsArray
}

/** Only text and bytes: clients convert all other types differently. */
export type StatementValue = string | Buffer | null

/** The name as an SQL identifier. The option's rule guarantees that it needs no escaping. */
export function toQuotedName(schema: string): string {
  return `"${schema}"`
}

/**
 * A statement with `:token` for the value `token`, and `{=}` for the operator `=` of Postgres: another schema that a session searches first
 * may have one of its own, which would make two records of one key.
 */
export function createStatement(sql: string): (values: SqlValues) => Statement {
  const { strings, encodeValues } = parseTemplate(qualifyOperators(sql), encodeValue, getCast)
  const text = strings.reduce((all, piece, i) => `${all}$${i}${piece}`)
  const name = `once_per_key_${createHash('sha256').update(text).digest('hex').slice(0, 16)}`
  return (values) => ({ text, values: encodeValues(values), name, strings })
}

function qualifyOperators(sql: string): string {
  return sql.replace(/\{([^\w\s{}]+)\}/g, 'OPERATOR(pg_catalog.$1)')
}

/**
 * From text, so that clients that ask the server for types send text. `bigint` is a word of the grammar; any other type is taken from the
 * schema that a session searches first.
 */
function getCast(name: string): string {
  if (BYTES.has(name)) return '::pg_catalog.bytea'
  return INTEGERS.has(name) ? '::pg_catalog.text::bigint' : '::pg_catalog.text'
}

const BYTES: ReadonlySet<string> = new Set(['id', 'body', 'steps'])
const INTEGERS: ReadonlySet<string> = new Set([
  ...['attempt', 'uncertain', 'lease_until', 'expires_at', 'status'],
  ...['leaseMs', 'retentionMs', 'revision', 'expiresAt', 'lock', 'idleMs', 'block', 'turnMs', 'pauseMs'],
])

function encodeValue(value: SqlValue): StatementValue {
  if (typeof value === 'number') return `${value}`
  return value instanceof Uint8Array ? toBuffer(value) : value
}

/**
 * The advisory lock of a key: 64 bits of the record's id, which nobody can choose, and of the schema, so that two stores in one database
 * never meet. Two records that share the bits by accident wait for each other, no more.
 */
export function computeLockNumber(id: Buffer, schema: string): string {
  const ofSchema = createHash('sha256').update(`once-per-key ${schema}`).digest().readBigInt64BE()
  return `${id.readBigInt64BE() ^ ofSchema}`
}
