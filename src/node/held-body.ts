import { Buffer } from 'node:buffer'
import { Gathered } from '../http/index.js'
import { invalidChunk } from './node-errors.js'

/** Bytes that a handler has written and that have not been sent. */
export class HeldBody {
  #gathered = new Gathered()

  get byteLength(): number {
    return this.#gathered.byteLength
  }

  add(bytes: Buffer): void {
    this.#gathered.add(bytes)
  }

  /** Removes and returns the bytes as one Buffer. */
  take(): Buffer {
    const body = this.#gathered.whole()
    this.#gathered = new Gathered()
    return Buffer.isBuffer(body) ? body : bufferOf(body)
  }
}

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
