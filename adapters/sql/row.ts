/** A row, by the names of its columns: text as strings, numbers as integers, bytes as they are. */
export type Row = Readonly<Record<string, unknown>>

/** A column has a value that no version of the library writes. The message contains no value. */
export class DamagedRowError extends Error {
  constructor(column: string) {
    super(`its column ${column} is damaged`)
  }
}

/** @throws DamagedRowError */
export function requireTextColumn(row: Row, column: string): string {
  const value = row[column]
  if (typeof value !== 'string') throw new DamagedRowError(column)
  return value
}

/** @throws DamagedRowError */
export function requireIntegerColumn(row: Row, column: string): number {
  const value = row[column]
  if (!Number.isSafeInteger(value)) throw new DamagedRowError(column)
  return value as number
}

/** Clients convert numbers differently, so statements return them as text. The same row with numbers in these columns. */
export function parseIntegerColumns(row: Row, columns: readonly string[]): Row {
  return { ...row, ...Object.fromEntries(columns.map((name) => [name, toNumberIfInteger(row[name])])) }
}

function toNumberIfInteger(value: unknown): unknown {
  return typeof value === 'string' && /^-?\d+$/.test(value) ? Number(value) : value
}

/** A view of the same bytes, as clients take them. */
export function toBuffer<Bytes extends Uint8Array | null>(bytes: Bytes): Buffer | Extract<Bytes, null> {
  if (bytes === null) return null as Extract<Bytes, null>
  return Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength)
}
