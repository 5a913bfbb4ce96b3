/** One object per statement: clients may cache templates by identity. */
export function createTemplate(pieces: readonly string[]): TemplateStringsArray {
  return Object.freeze(Object.assign([...pieces], { raw: Object.freeze([...pieces]) }))
}

/** A value of a statement, before a database's client gets it in its own form. */
export type SqlValue = string | number | Uint8Array | null

/** By the names in the statement's text. */
export type SqlValues = Readonly<Record<string, SqlValue>>

/** The text in which a name with a colon stands for each value, as `:token` does: the pieces between the names, and the names. */
export function splitAtNames(sql: string): { readonly pieces: readonly string[]; readonly names: readonly string[] } {
  const parts = sql.split(/(?<![:\w]):([a-zA-Z_]\w*)/)
  return { pieces: parts.filter((_, i) => i % 2 === 0), names: parts.filter((_, i) => i % 2 === 1) }
}
