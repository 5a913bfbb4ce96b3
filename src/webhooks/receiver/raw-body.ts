import { Buffer } from 'node:buffer'
import type { IncomingMessage } from 'node:http'
import { IdempotencyError } from '../../core/index.js'

/** A body's bytes as they were sent, or why there are none. */
export type RawBody =
  | { readonly kind: 'whole'; readonly bytes: Buffer }
  | { readonly kind: 'too_large' }
  /** A content coding that nobody undoes here. */
  | { readonly kind: 'encoded' }
  /** The client left before the end. */
  | { readonly kind: 'abandoned' }

/**
 * Reads a body as it was sent: from `req.rawBody` (or `req.body` where it is bytes, as `express.raw()` leaves it), else
 * from the stream. More than `maxBytes` are never held.
 *
 * @throws IdempotencyError `raw_body_consumed`: a parser has read the stream and kept no bytes.
 */
export async function readRawBody(req: IncomingMessage, maxBytes: number): Promise<RawBody> {
  const { rawBody, body } = req as { rawBody?: unknown; body?: unknown }
  const kept = bytesOf(rawBody) ?? (body instanceof Uint8Array ? bytesOf(body) : null)
  if (kept !== null) return kept.byteLength > maxBytes ? { kind: 'too_large' } : { kind: 'whole', bytes: kept }
  if (req.readableDidRead) throw consumed()
  if (req.readableEnded) return { kind: 'whole', bytes: Buffer.alloc(0) }
  if (req.destroyed) return { kind: 'abandoned' }
  const { 'content-encoding': coding = 'identity', 'content-length': length } = req.headers
  if (coding.trim().toLowerCase() !== 'identity') return { kind: 'encoded' }
  if (Number(length) > maxBytes) return discard(req)
  return readStream(req, maxBytes)
}

function bytesOf(value: unknown): Buffer | null {
  if (typeof value === 'string') return Buffer.from(value)
  return value instanceof Uint8Array ? Buffer.from(value.buffer, value.byteOffset, value.byteLength) : null
}

function readStream(req: IncomingMessage, maxBytes: number): Promise<RawBody> {
  return new Promise((resolve) => {
    const chunks: Buffer[] = []
    let size = 0
    const finish = (raw: RawBody) => {
      req.off('data', onChunk).off('end', onEnd).off('close', onGone).off('error', onGone)
      resolve(raw)
    }
    const onChunk = (chunk: Buffer | string) => {
      // Somebody may have set an encoding: its text gives the bytes back.
      const bytes = typeof chunk === 'string' ? Buffer.from(chunk, req.readableEncoding ?? 'utf8') : chunk
      size += bytes.byteLength
      if (size > maxBytes) finish(discard(req))
      else chunks.push(bytes)
    }
    const onEnd = () => finish({ kind: 'whole', bytes: Buffer.concat(chunks) })
    const onGone = () => finish({ kind: 'abandoned' })
    req.on('data', onChunk).on('end', onEnd).on('close', onGone).on('error', onGone)
  })
}

const MOST_DISCARDED_BYTES = 1_048_576

/**
 * A client reads its answer once it has sent its body, so what is left of one that is a little too large is read and
 * dropped. One that goes on and on is cut off.
 */
function discard(req: IncomingMessage): RawBody {
  let size = 0
  req.on('error', () => {}) // The client may leave, and be right.
  req.on('data', (chunk: Buffer) => {
    size += chunk.length
    if (size > MOST_DISCARDED_BYTES) req.socket.destroy()
  })
  return { kind: 'too_large' }
}

function consumed(): IdempotencyError {
  return new IdempotencyError(
    'raw_body_consumed',
    'The body has been read before the webhook receiver, and its bytes, which the signature is about, were not kept. ' +
      'Mount the receiver before the parser, or let the parser keep them:\n' +
      '  express.json({ verify: (req, _res, bytes) => Object.assign(req, { rawBody: bytes }) })',
  )
}
