import { Buffer } from 'node:buffer'
import { ByteCollector } from '../http/index.js'
import { invalidChunkError } from './node-errors.js'

/** Bytes that a handler has written and that have not been sent. */
export class BodyBuffer {
  /** Made for the first bytes, because most responses are sent without it. */
  #gathered: ByteCollector | undefined = undefined

  get byteLength(): number {
    return this.#gathered?.byteLength ?? 0
  }

  add(bytes: Buffer): void {
    this.#gathered ??= new ByteCollector()
    this.#gathered.add(bytes)
  }

  /** Removes and returns the bytes as one Buffer. */
  takeBytes(): Buffer {
    const body = this.#gathered?.concat() ?? NOTHING
    this.#gathered = undefined
    return Buffer.isBuffer(body) ? body : toBuffer(body)
  }
}

const NOTHING = Buffer.alloc(0)

/** Above this size, copying the text costs more than sending a second piece. */
export const MAX_BYTES_AS_TEXT = 16_384

/**
 * A copy, because the caller may reuse its buffer before the response is sent. Throws for what Node's own `write`
 * refuses.
 */
export function copyBytes(chunk: unknown, encoding: unknown): Buffer {
  if (Buffer.isBuffer(chunk)) return Buffer.from(chunk)
  return typeof chunk === 'string' ? encodeChunk(chunk, encoding) : Buffer.from(encodeChunk(chunk, encoding))
}

/** The same without a copy, for bytes that are sent immediately. */
export function encodeChunk(chunk: unknown, encoding: unknown): Buffer {
  if (typeof chunk === 'string') {
    return Buffer.from(chunk, typeof encoding === 'string' ? (encoding as BufferEncoding) : 'utf8')
  }
  if (chunk instanceof Uint8Array) return toBuffer(chunk)
  throw invalidChunkError()
}

/** The same bytes, as a Buffer. */
export function toBuffer({ buffer, byteOffset, byteLength }: Uint8Array): Buffer {
  return Buffer.from(buffer, byteOffset, byteLength)
}
