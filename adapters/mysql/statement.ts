import { Buffer } from 'node:buffer'
import { createTemplate } from '../sql/clients.js'

/** A statement for a client, in two forms: a text with `?`, and the pieces of a tagged template. */
export interface Statement {
  readonly text: string
  readonly values: readonly StatementValue[]
  /** As a tagged template receives them: `strings[0]`, the first value, `strings[1]` … */
  readonly strings: TemplateStringsArray
}

/** Texts as bytes too: no character set, collation or `sql_mode` changes what they are. */
export type StatementValue = Buffer | number | null

/** `sql` with a `?` for each value, and no other question mark. */
export function createStatement(sql: string): (...values: StatementValue[]) => Statement {
  const strings = createTemplate(sql.split('?'))
  return (...values) => ({ text: sql, values, strings })
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

export function encodeUtf8(text: string): Buffer {
  return Buffer.from(text, 'utf8')
}
