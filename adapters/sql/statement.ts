/** A value of a statement, before a database's client gets it in its own form. */
export type SqlValue = string | number | Uint8Array | null

/** By the names in the statement's text. */
export type SqlValues = Readonly<Record<string, SqlValue>>

/**
 * A tagged template of a text in which a name with a colon stands for each value, as `:token` does. `encode` gives a client its values, and
 * `getCast` what stands behind a name.
 */
export function parseTemplate<Value>(sql: string, encode: (value: SqlValue) => Value, getCast = (_name: string) => '') {
  const parts = sql.split(/(?<![:\w]):([a-zA-Z_]\w*)/)
  const names = parts.filter((_, i) => i % 2 === 1)
  const pieces = ['', ...names.map(getCast)].map((cast, i) => `${cast}${parts[2 * i]}`)
  return {
    /** One object per statement: clients may cache templates by identity. */
    strings: Object.freeze(Object.assign([...pieces], { raw: Object.freeze(pieces) })) as TemplateStringsArray,
    encodeValues: (values: SqlValues) => names.map((name) => encode(values[name] as SqlValue)),
  }
}
