import { Buffer } from 'node:buffer'
import { type Answer, NOT_KEPT } from '../../src/core/index.js'

/** Above this size a Buffer is better; below, its overhead of some 300 bytes and garbage collection costs more. */
const MOST_BYTES_AS_TEXT = 4_096

/**
 * An answer in memory: as few objects as possible, and flat strings (V8 keeps a concatenated string as its parts, at
 * several times the bytes). Headers and body are copied on each read and when they are stored, because callers may
 * modify theirs.
 */
export class KeptAnswer implements Answer {
  readonly status: number
  readonly statusMessage: string
  readonly #headers: string
  /** Latin-1 text: one character per byte. */
  readonly #body: string | Buffer | null

  constructor({ status, statusMessage, headers, body }: Answer) {
    this.status = status
    this.statusMessage = statusMessage
    this.#headers = textOf(headers)
    this.#body = body === null ? null : keptBytes(body)
    if (!Number.isInteger(this.byteLength)) throw new TypeError('The answer is not made of text and bytes.')
  }

  get headers(): Answer['headers'] {
    return pairsIn(this.#headers)
  }

  get body(): Buffer | null {
    return typeof this.#body === 'string' ? Buffer.from(this.#body, 'latin1') : this.#body && Buffer.from(this.#body)
  }

  /** Its size besides a record's own fields. */
  get byteLength(): number {
    return this.statusMessage.length + this.#headers.length + (this.#body?.length ?? 0)
  }
}

/**
 * Headers as one text, one line for each name and each value; if one of them contains a line feed, as JSON. The first
 * form begins with a line feed, the second with a bracket.
 */
function textOf(headers: Answer['headers']): string {
  let text = ''
  for (const [name, value] of headers) {
    if (name.includes('\n') || value.includes('\n')) return inOnePiece(JSON.stringify(headers))
    text += `\n${name}\n${value}`
  }
  return inOnePiece(text)
}

function pairsIn(text: string): [name: string, value: string][] {
  if (text.startsWith('[')) return JSON.parse(text)
  const pairs: [string, string][] = []
  const lines = text.split('\n')
  for (let i = 1; i < lines.length; i += 2) pairs.push([lines[i] as string, lines[i + 1] as string])
  return pairs
}

/** A placeholder for an answer that was not kept. */
export const NO_ANSWER = new KeptAnswer(NOT_KEPT)

/** V8 flattens a concatenated string when one of its characters is read. */
export function inOnePiece(text: string): string {
  text.charCodeAt(0)
  return text
}

function keptBytes(body: Uint8Array): string | Buffer {
  const { buffer, byteOffset, byteLength } = body
  if (byteLength <= MOST_BYTES_AS_TEXT) {
    const bytes = Buffer.isBuffer(body) ? body : Buffer.from(buffer, byteOffset, byteLength)
    return bytes.toString('latin1')
  }
  // Not from Buffer's pool: a small slice would keep the whole pool alive.
  return Buffer.from(new Uint8Array(body).buffer)
}
