import type { Buffer } from 'node:buffer'

/** What a client is asked to send: the same statement as a text with `$1`, `$2` …, and as the pieces of a template. */
export interface Statement {
  readonly text: string
  readonly values: readonly StatementValue[]
  /** As a tagged template gets them: `strings[0]`, the first value, `strings[1]` … */
  readonly strings: TemplateStringsArray
}

/** Texts and bytes alone: clients differ in what they make of anything else. */
export type StatementValue = string | Buffer | null

/** How a parameter reaches its type. By way of text, so that a client which asks the server for types sends text. */
const CASTS = {
  text: '::text',
  bigint: '::text::bigint',
  integer: '::text::integer',
  boolean: '::text::boolean',
  bytea: '::bytea',
}
export type ParameterType = keyof typeof CASTS

/** A call of one of the schema's functions, which answers with rows. */
export function call(name: string, ...types: readonly ParameterType[]): (...values: StatementValue[]) => Statement {
  const pieces = [`SELECT * FROM ${name}(`, ...types.map((type) => `${CASTS[type]}, `)]
  const last = pieces.pop() ?? ''
  pieces.push(types.length === 0 ? `${last})` : `${last.slice(0, -2)})`)
  const strings = templateOf(pieces)
  const text = pieces.reduce((sql, piece, i) => `${sql}$${i}${piece}`)
  return (...values) => ({ text, values, strings })
}

/** One object a statement: clients that remember templates do so by identity. */
function templateOf(pieces: readonly string[]): TemplateStringsArray {
  return Object.freeze(Object.assign([...pieces], { raw: Object.freeze([...pieces]) }))
}
