import { Buffer } from 'node:buffer'
import type { Answer } from '../../src/core/index.js'

/** A buffer takes some 300 bytes besides its own, and the garbage collector's time. */
const MOST_BYTES_AS_TEXT = 4_096

/**
 * An answer as it is kept: as few objects as can be, and text of one piece, since V8 keeps what was put together as its
 * pieces, at several times the bytes. Each look at headers or body makes them anew: a reader may change what it was given,
 * and so may whoever handed them in.
 */
export class KeptAnswer implements Answer {
  readonly status: number
  readonly statusMessage: string
  readonly #headers: string
  /** Latin-1 text: a byte is a character. */
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

  /** What it takes besides a record's own fields. */
  get byteLength(): number {
    return this.statusMessage.length + this.#headers.length + (this.#body?.length ?? 0)
  }
}

/**
 * Headers as one text, a line for each name and each value; where one of them has lines itself, as JSON does. A line feed
 * begins the first, a bracket the other.
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

/** What stands for an answer that was not kept. */
export const NO_ANSWER = new KeptAnswer({ status: 200, statusMessage: '', headers: [], body: null })

/** V8 puts a text together when one of its characters is looked at. */
export function inOnePiece(text: string): string {
  text.charCodeAt(0)
  return text
}

function keptBytes(body: Uint8Array): string | Buffer {
  const { buffer, byteOffset, byteLength } = body
  if (byteLength <= MOST_BYTES_AS_TEXT) return Buffer.from(buffer, byteOffset, byteLength).toString('latin1')
  // Bytes of their own, not of Buffer's pool: a small slice of it would keep the whole pool.
  return Buffer.from(new Uint8Array(body).buffer)
}
