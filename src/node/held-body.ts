import { Buffer } from 'node:buffer'
import { invalidChunk } from './node-errors.js'

/** Bytes that a handler has written and that have not been sent. */
export class HeldBody {
  /** Mostly there is one piece; the lists are made for a second one. */
  #only: Buffer | undefined = undefined
  /** In order: whole blocks of many pieces, */
  #blocks: Buffer[] | undefined = undefined
  /** and what was written since. */
  #pieces: Buffer[] | undefined = undefined
  #byteLength = 0

  get byteLength(): number {
    return this.#byteLength
  }

  add(bytes: Buffer): void {
    this.#byteLength += bytes.byteLength
    if (this.#only === undefined) {
      this.#only = bytes
      return
    }
    this.#pieces ??= [this.#only]
    this.#pieces.push(bytes)
    if (this.#pieces.length < MOST_PIECES) return
    this.#blocks ??= []
    this.#blocks.push(Buffer.concat(this.#pieces))
    this.#pieces = []
  }

  /** Removes and returns the bytes as one Buffer. */
  take(): Buffer {
    const body = this.#all()
    this.#only = undefined
    this.#blocks = undefined
    this.#pieces = undefined
    this.#byteLength = 0
    return body
  }

  #all(): Buffer {
    if (this.#pieces === undefined) return this.#only ?? NO_BYTES
    return Buffer.concat(this.#blocks === undefined ? this.#pieces : [...this.#blocks, ...this.#pieces])
  }
}

/** A Buffer of a few bytes takes twenty times their memory. */
const MOST_PIECES = 1_024

/**
 * A copy, because the caller may reuse its buffer before the response is sent. Throws for what Node's own `write`
 * refuses.
 */
export function bytesOf(chunk: unknown, encoding: unknown): Buffer {
  if (Buffer.isBuffer(chunk)) return Buffer.from(chunk)
  return typeof chunk === 'string' ? viewOf(chunk, encoding) : Buffer.from(viewOf(chunk, encoding))
}

/** The same without a copy, for bytes that are sent immediately. */
export function viewOf(chunk: unknown, encoding: unknown): Buffer {
  if (typeof chunk === 'string') {
    return Buffer.from(chunk, typeof encoding === 'string' ? (encoding as BufferEncoding) : 'utf8')
  }
  if (chunk instanceof Uint8Array) return bufferOf(chunk)
  throw invalidChunk()
}

/** The same bytes, as a Buffer. */
export function bufferOf({ buffer, byteOffset, byteLength }: Uint8Array): Buffer {
  return Buffer.from(buffer, byteOffset, byteLength)
}

const NO_BYTES = Buffer.alloc(0)
