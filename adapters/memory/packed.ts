import { Buffer } from 'node:buffer'
import type { Answer, machine, StoredStep } from '../../src/core/index.js'

/** An estimate of what V8 and lru-cache need for a record besides its text and bytes. */
const RECORD_OVERHEAD_BYTES = 420
/** The same for a step besides its label and its bytes. */
const STEP_OVERHEAD_BYTES = 200
/** Above this size a Buffer is better. Below, its overhead of some 200 bytes and garbage collection costs more. */
const MAX_BYTES_AS_TEXT = 4_096

/** The size of a record as an entry keeps it. Throws if its answer is not made of text and bytes, as a caller without types may pass it. */
export function computeSize(key: string, record: machine.StoredRecord): number {
  let bytes = RECORD_OVERHEAD_BYTES + key.length + record.token.length
  if (record.fingerprint !== null) bytes += record.fingerprint.length
  if (record.state !== 'completed') {
    if (record.steps === undefined) return bytes
    return record.steps.reduce((sum, { label, result }) => {
      return sum + STEP_OVERHEAD_BYTES + label.length + (result === null ? 0 : result.byteLength)
    }, bytes)
  }
  const { statusMessage, headers, body } = record.answer
  let isValid = typeof statusMessage === 'string' && (body === null || body instanceof Uint8Array)
  bytes += statusMessage.length
  for (const [name, value] of headers) {
    isValid &&= typeof name === 'string' && typeof value === 'string'
    bytes += name.length + value.length + 2
  }
  if (!isValid) throw new TypeError('The answer is not made of text and bytes.')
  return body === null ? bytes : bytes + body.byteLength
}

/**
 * The texts of a completed record in one flat string, a line for each: joined, because V8 keeps a concatenated string as its pieces, at several
 * times the bytes, and a slice with all of what it is a slice of. If one has a line feed, or the token begins with a bracket, they are a
 * JSON array, which begins with a bracket.
 */
export function joinRecordTexts(token: string, fingerprint: string, { statusMessage, headers }: Answer): string {
  const texts = [token, fingerprint, statusMessage]
  for (const [name, value] of headers) texts.push(name, value)
  const isPlain = !token.startsWith('[') && !texts.some((text) => text.includes('\n'))
  return isPlain ? texts.join('\n') : JSON.stringify(texts)
}

export function splitRecordTexts(joined: string): string[] {
  return joined.startsWith('[') ? JSON.parse(joined) : joined.split('\n')
}

export function readToken(joined: string): string {
  return joined.startsWith('[') ? (splitRecordTexts(joined)[0] as string) : joined.slice(0, joined.indexOf('\n'))
}

export function readFingerprint(joined: string): string {
  if (joined.startsWith('[')) return splitRecordTexts(joined)[1] as string
  const end = joined.indexOf('\n')
  return joined.slice(end + 1, joined.indexOf('\n', end + 1))
}

/** Copies of the bytes of a record, because callers may change theirs. Throws if there is no room for them, and has changed nothing. */
export function copyContent(record: machine.StoredRecord): string | Buffer | readonly StoredStep[] | null {
  if (record.state === 'completed') return copyBody(record.answer.body)
  return record.steps === undefined ? null : copySteps(record.steps)
}

function copyBody(body: Uint8Array | null): string | Buffer | null {
  if (body === null) return null
  const { buffer, byteOffset, byteLength } = body
  // Not from Buffer's pool: a small slice would keep the whole pool alive.
  if (byteLength > MAX_BYTES_AS_TEXT) return Buffer.from(new Uint8Array(body).buffer)
  return (Buffer.isBuffer(body) ? body : Buffer.from(buffer, byteOffset, byteLength)).toString('latin1')
}

export function copySteps(steps: readonly StoredStep[]): readonly StoredStep[] {
  return steps.map((step) => ({ ...step, result: step.result && Buffer.from(step.result) }))
}
