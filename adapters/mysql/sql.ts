import { Buffer } from 'node:buffer'
import { createHash } from 'node:crypto'
import { toBuffer } from '../sql/row.js'
import { parseTemplate, type SqlValue, type SqlValues } from '../sql/statement.js'

/** A statement for a client, in two forms: a text with `?`, and the pieces of a tagged template. */
export interface Statement {
  readonly text: string
  readonly values: readonly StatementValue[]
  /** As a tagged template receives them: `strings[0]`, the first value, `strings[1]` … */
  readonly strings: TemplateStringsArray
}

/** Texts as bytes too: no character set, collation or `sql_mode` changes what they are. */
export type StatementValue = Buffer | number | null

/** A statement with `:token` for the value `token`, and no question mark. */
export function createStatement(sql: string): (values?: SqlValues) => Statement {
  const { strings, encodeValues } = parseTemplate(sql, encodeValue)
  const text = strings.join('?')
  return (values = {}) => ({ text, values: encodeValues(values), strings })
}

function encodeValue(value: SqlValue): StatementValue {
  if (typeof value === 'string') return Buffer.from(value, 'utf8')
  return value instanceof Uint8Array ? toBuffer(value) : value
}

/** The whole statement as a text, in which nothing must be escaped. */
export function toLiteralSql({ strings, values }: Statement): string {
  return strings.reduce((sql, piece, i) => `${sql}${toValueSql(values[i - 1] as StatementValue)}${piece}`)
}

/** How many bytes it has at most, however a client writes its values. */
export function computeStatementBytes({ text, values }: Statement): number {
  return values.reduce<number>(
    (sum, value) => sum + (Buffer.isBuffer(value) ? 2 * value.length : 0) + LONGEST,
    text.length,
  )
}

/** Of a number, or of what stands around bytes. */
const LONGEST = 20

function toValueSql(value: StatementValue): string {
  return Buffer.isBuffer(value) ? `X'${value.toString('hex')}'` : `${value}`
}

/** Its name says whose it is. */
export function toSavepointName(token: string): string {
  return `once_per_key_${computeTokenDigest(token)}`
}

/** The token of a row that no commit shows; if one did, the row would be nobody's. */
export function toLockRowToken(token: string): string {
  return `entered ${computeTokenDigest(token)}`
}

function computeTokenDigest(token: string): string {
  return createHash('sha256').update(token).digest('hex').slice(0, 32)
}
