import { Buffer } from 'node:buffer'
import type { IncomingHttpHeaders, IncomingMessage } from 'node:http'
import { type Answer, IdempotencyError } from '../../../core/index.js'
import { bodyConsumedError, isBodyConsumed, isBodyLost } from '../../../fetch/request.js'
import {
  type AnswerBuffer,
  ByteCollector,
  type RequestRun,
  readAtMost,
  toBodyStream,
  type WaitUntil,
} from '../../../http/index.js'
import { toBuffer } from '../../../node/held-body.js'

/** What a receiver's functions get: Node's request, or Fetch's. */
export type AnyRequest = IncomingMessage | Request

export interface Delivery<Req extends AnyRequest> {
  readonly request: Req
  readonly method: string
  /** With names in lower case. */
  readonly headers: IncomingHttpHeaders
  readBody(maxBytes: number): Promise<RawBody>
  isAbandoned(): boolean
  readonly waitUntil?: WaitUntil | undefined
}

export function createNodeDelivery<Req extends AnyRequest>(request: Req & IncomingMessage): Delivery<Req> {
  return {
    request,
    method: request.method ?? '',
    headers: request.headers ?? {}, // A test double may have none.
    readBody: (maxBytes) => readRawBody(request, maxBytes),
    isAbandoned: () => request.socket?.destroyed === true,
  }
}

export function createFetchDelivery<Req extends AnyRequest>(
  request: Req & Request,
  waitUntil: WaitUntil | undefined,
): Delivery<Req> {
  const headers: IncomingHttpHeaders = Object.fromEntries(request.headers)
  return {
    request,
    method: request.method,
    headers,
    readBody: (maxBytes) => readFetchBody(request, headers, maxBytes),
    isAbandoned: () => request.signal?.aborted === true,
    waitUntil,
  }
}

/** @throws IdempotencyError `raw_body_consumed`: somebody has read it, or is reading it. */
async function readFetchBody(request: Request, headers: IncomingHttpHeaders, maxBytes: number): Promise<RawBody> {
  if (isBodyConsumed(request)) throw fetchBodyConsumedError()
  if (isEncoded(headers)) return { kind: 'encoded' }
  let bytes: Uint8Array | null = Buffer.alloc(0)
  try {
    const body = toBodyStream(request)
    if (body !== null) bytes = await readAtMost(body, maxBytes)
  } catch {
    return { kind: 'abandoned' } // The connection broke.
  }
  if (isBodyLost(bytes, request)) throw fetchBodyConsumedError()
  return bytes === null ? { kind: 'too_large' } : { kind: 'whole', bytes: toBuffer(bytes) }
}

function fetchBodyConsumedError(): IdempotencyError {
  return bodyConsumedError('webhook receiver', 'its signature, which covers the raw bytes, cannot be checked')
}

/** "200 OK"; the document shows no body. */
export const ACKNOWLEDGED: Answer = { status: 200, statusMessage: '', headers: [], body: Buffer.alloc(0) }

/** The answer inside a handler's transaction: the event counts as acknowledged once the transaction's work resolves. */
export class DeliveryAnswer implements AnswerBuffer {
  isAcknowledged = false
  readonly answersByReturning = true
  readonly #run: RequestRun

  constructor(run: RequestRun) {
    this.#run = run
  }

  onRollback(): void {
    this.isAcknowledged = false
  }

  onWorkResolved(): void {
    this.isAcknowledged = true
    void this.#run.settle(ACKNOWLEDGED)
  }
}

type RawBody =
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
  const kept = toBytesOrNull(rawBody) ?? (body instanceof Uint8Array ? toBytesOrNull(body) : null)
  if (kept !== null) return kept.byteLength > maxBytes ? { kind: 'too_large' } : { kind: 'whole', bytes: kept }
  if (req.readableDidRead || !hasStreamMethods(req)) throw rawBodyConsumedError()
  if (req.readableEnded) return { kind: 'whole', bytes: Buffer.alloc(0) }
  if (req.destroyed) return { kind: 'abandoned' }
  const headers = req.headers ?? {}
  if (isEncoded(headers)) return { kind: 'encoded' }
  req.resume() // Middleware that waits for something may have paused it; then no listener would make it flow.
  if (Number(headers['content-length']) > maxBytes) return discard(req)
  return readStream(req, maxBytes)
}

/** A test double may be no stream. */
function hasStreamMethods(req: IncomingMessage): boolean {
  return typeof req.resume === 'function' && typeof req.on === 'function'
}

function isEncoded({ 'content-encoding': coding = 'identity' }: IncomingHttpHeaders): boolean {
  return coding.trim().toLowerCase() !== 'identity'
}

function toBytesOrNull(value: unknown): Buffer | null {
  if (typeof value === 'string') return Buffer.from(value)
  return value instanceof Uint8Array ? toBuffer(value) : null
}

function readStream(req: IncomingMessage, maxBytes: number): Promise<RawBody> {
  return new Promise((resolve) => {
    const read = new ByteCollector()
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
    const onEnd = () => finish({ kind: 'whole', bytes: toBuffer(read.concat()) })
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
    if (size > MOST_DISCARDED_BYTES) req.socket?.destroy()
  })
  return { kind: 'too_large' }
}

function rawBodyConsumedError(): IdempotencyError {
  return new IdempotencyError(
    'raw_body_consumed',
    'A parser read the body before the webhook receiver and did not keep its raw bytes, which the signature covers. ' +
      'Mount the receiver before the parser, or let the parser keep them:\n' +
      '  express.json({ verify: (req, _res, bytes) => Object.assign(req, { rawBody: bytes }) })\n' +
      '  NestFactory.create(AppModule, { rawBody: true })',
  )
}
