import { Buffer } from 'node:buffer'
import type { IncomingHttpHeaders, IncomingMessage } from 'node:http'
import { IdempotencyError } from '../../../core/index.js'
import { Gathered } from '../../../http/index.js'
import { bufferOf } from '../../../node/held-body.js'

/** A body's raw bytes, or why there are none. */
export type RawBody =
  | { readonly kind: 'whole'; readonly bytes: Buffer }
  | { readonly kind: 'too_large' }
  /** A content coding, which is not decoded here. */
  | { readonly kind: 'encoded' }
  /** The client disconnected before the end. */
  | { readonly kind: 'abandoned' }

/**
 * Reads a body's raw bytes: from `req.rawBody`, or from `req.body` if it is bytes (as `express.raw()` leaves it), else
 * from the stream. Never reads more than `maxBytes`, in however many pieces they come.
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
  if (isEncoded(req.headers)) return { kind: 'encoded' }
  req.resume() // Middleware that waits for something may have paused it; then no listener would make it flow.
  if (Number(req.headers['content-length']) > maxBytes) return discard(req)
  return readStream(req, maxBytes)
}

export function isEncoded({ 'content-encoding': coding = 'identity' }: IncomingHttpHeaders): boolean {
  return coding.trim().toLowerCase() !== 'identity'
}

function bytesOf(value: unknown): Buffer | null {
  if (typeof value === 'string') return Buffer.from(value)
  return value instanceof Uint8Array ? bufferOf(value) : null
}

function readStream(req: IncomingMessage, maxBytes: number): Promise<RawBody> {
  return new Promise((resolve) => {
    const read = new Gathered()
    const finish = (raw: RawBody) => {
      req.off('data', onChunk).off('end', onEnd).off('close', onGone).off('error', onGone)
      resolve(raw)
    }
    const onChunk = (chunk: Buffer | string) => {
      // If an encoding was set on the stream, chunks are text; encoding them again restores the bytes.
      const bytes = typeof chunk === 'string' ? Buffer.from(chunk, req.readableEncoding ?? 'utf8') : chunk
      if (read.byteLength + bytes.byteLength > maxBytes) finish(discard(req))
      else read.add(bytes)
    }
    const onEnd = () => finish({ kind: 'whole', bytes: bufferOf(read.whole()) })
    const onGone = () => finish({ kind: 'abandoned' })
    req.on('data', onChunk).on('end', onEnd).on('close', onGone).on('error', onGone)
  })
}

const MOST_DISCARDED_BYTES = 1_048_576

/**
 * Most clients read the response only after sending their body. So the rest of a body that is a little too large is
 * read and discarded; beyond that the connection is closed.
 */
function discard(req: IncomingMessage): RawBody {
  let size = 0
  req.on('error', () => {}) // The client may disconnect; that is not an error here.
  req.on('data', (chunk: Buffer) => {
    size += chunk.length
    if (size > MOST_DISCARDED_BYTES) req.socket.destroy()
  })
  return { kind: 'too_large' }
}

function consumed(): IdempotencyError {
  return new IdempotencyError(
    'raw_body_consumed',
    'A parser read the body before the webhook receiver and did not keep its raw bytes, which the signature covers. ' +
      'Mount the receiver before the parser, or let the parser keep them:\n' +
      '  express.json({ verify: (req, _res, bytes) => Object.assign(req, { rawBody: bytes }) })',
  )
}
