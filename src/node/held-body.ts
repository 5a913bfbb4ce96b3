import { Buffer } from 'node:buffer'
import { invalidChunk } from './node-errors.js'

/** Bytes that a handler has written and that have not been sent. */
export class HeldBody {
  /** In order: whole blocks of many pieces, */
  #blocks: Buffer[] = []
  /** and what was written since. */
  #pieces: Buffer[] = []
  #byteLength = 0

  get byteLength(): number {
    return this.#byteLength
  }

  add(bytes: Buffer): void {
    this.#pieces.push(bytes)
    this.#byteLength += bytes.byteLength
    if (this.#pieces.length === MOST_PIECES) this.#join()
  }

  /** Removes and returns the bytes as one Buffer. */
  take(): Buffer {
    const all = this.#blocks.length === 0 ? this.#pieces : [...this.#blocks, ...this.#pieces]
    const [first = NO_BYTES, second] = all
    const body = second === undefined ? first : Buffer.concat(all)
    this.#blocks = []
    this.#pieces = []
    this.#byteLength = 0
    return body
  }

  #join(): void {
    this.#blocks.push(Buffer.concat(this.#pieces))
    this.#pieces = []
  }
}

/** A Buffer of a few bytes takes twenty times their memory. */
const MOST_PIECES = 1_024

/**
 * A copy, because the caller may reuse its buffer before the response is sent. Throws for what Node's own `write`
 * refuses.
 */
export function bytesOf(chunk: unknown, encoding: unknown): Buffer {
  return typeof chunk === 'string' ? viewOf(chunk, encoding) : Buffer.from(viewOf(chunk, encoding))
}

/** The same without a copy, for bytes that are sent immediately. */
export function viewOf(chunk: unknown, encoding: unknown): Buffer {
  if (typeof chunk === 'string') {
    return Buffer.from(chunk, typeof encoding === 'string' ? (encoding as BufferEncoding) : 'utf8')
  }
  if (chunk instanceof Uint8Array) return Buffer.from(chunk.buffer, chunk.byteOffset, chunk.byteLength)
  throw invalidChunk()
}

const NO_BYTES = Buffer.alloc(0)
