import { Buffer } from 'node:buffer'
import { invalidChunk } from './node-errors.js'

/** What a handler has written so far. */
export interface HeldBody {
  byteLength(): number
  add(bytes: Buffer): void
  /** The bytes in one piece; none are left. */
  take(): Buffer
}

export function createHeldBody(): HeldBody {
  let pieces: Buffer[] = []
  let byteLength = 0
  return {
    // No getter: V8 keeps a pair of accessors among its old objects, with all that it can see.
    byteLength: () => byteLength,
    add(bytes) {
      pieces.push(bytes)
      byteLength += bytes.byteLength
    },
    take() {
      const [first = NO_BYTES, second] = pieces
      const body = second === undefined ? first : Buffer.concat(pieces)
      pieces = []
      byteLength = 0
      return body
    },
  }
}

/** A copy: the caller may reuse its buffer before the response is sent. Refuses what Node's own `write` refuses. */
export function bytesOf(chunk: unknown, encoding: unknown): Buffer {
  if (typeof chunk === 'string') {
    return Buffer.from(chunk, typeof encoding === 'string' ? (encoding as BufferEncoding) : 'utf8')
  }
  if (chunk instanceof Uint8Array) return Buffer.from(chunk)
  throw invalidChunk()
}

const NO_BYTES = Buffer.alloc(0)
