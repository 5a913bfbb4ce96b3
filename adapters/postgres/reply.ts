import { Buffer } from 'node:buffer'
import { findRows } from '../sql/clients.js'
import { type Row, toBuffer } from '../sql/row.js'
import { PostgresStoreError } from './errors.js'

/** @throws PostgresStoreError `client_unsuitable`, as all functions here. */
export function requireRows(result: unknown): readonly Row[] {
  const rows = findRows(result)
  if (rows === null) throw clientUnsuitableError()
  return rows
}

export function requireRow(result: unknown): Row {
  const [row] = requireRows(result)
  if (row === undefined) throw clientUnsuitableError()
  return row
}

export function requireText(row: Row | undefined, column: string): string {
  const value = row?.[column]
  if (typeof value !== 'string') throw clientUnsuitableError()
  return value
}

/** All statements return text, but for the bytes. */
export function assertColumnsAreText(row: Row): void {
  for (const [name, value] of Object.entries(row)) {
    if (name !== 'body' && name !== 'steps' && value !== null && typeof value !== 'string')
      throw clientUnsuitableError()
  }
}

/** Some clients return bytes that are not a Buffer. A pipeline returns their text, in hexadecimal digits. */
export function parseBytesColumn(value: unknown): Uint8Array | null {
  if (value === null || value === undefined) return null
  if (typeof value === 'string' && value.startsWith('\\x')) return Buffer.from(value.slice(2), 'hex')
  if (!(value instanceof Uint8Array)) throw clientUnsuitableError()
  return toBuffer(value)
}

function clientUnsuitableError(): PostgresStoreError {
  return new PostgresStoreError(
    'client_unsuitable',
    'The client returned an unknown format. Expected { rows } or the rows, each an object with a ' +
      'string for each text column, and a Buffer for bytes.',
  )
}
