import type { Buffer } from 'node:buffer'
import { createHash } from 'node:crypto'
import { templateOf } from '../sql/clients.js'

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

/** How a parameter is cast to its type. Always from text, so that clients that ask the server for types send text. */
const CASTS = {
  text: '::text',
  bigint: '::text::bigint',
  integer: '::text::integer',
  boolean: '::text::boolean',
  bytea: '::bytea',
}
type ParameterType = keyof typeof CASTS

/** A call of one of the schema's functions, which returns rows. */
export function call(routine: string, ...types: readonly ParameterType[]): (...values: StatementValue[]) => Statement {
  const pieces = [`SELECT * FROM ${routine}(`, ...types.map((type) => `${CASTS[type]}, `)]
  const last = pieces.pop() ?? ''
  pieces.push(types.length === 0 ? `${last})` : `${last.slice(0, -2)})`)
  const strings = templateOf(pieces)
  const text = pieces.reduce((sql, piece, i) => `${sql}$${i}${piece}`)
  const name = `once_per_key_${createHash('sha256').update(text).digest('hex').slice(0, 16)}`
  return (...values) => ({ text, values, name, strings })
}
