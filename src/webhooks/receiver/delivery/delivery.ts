import { Buffer } from 'node:buffer'
import type { IncomingHttpHeaders, IncomingMessage } from 'node:http'
import { type Answer, IdempotencyError } from '../../../core/index.js'
import { type HeldAnswer, type RequestRun, readAtMost, type WaitUntil } from '../../../http/index.js'
import { bufferOf } from '../../../node/held-body.js'
import { isEncoded, type RawBody, readRawBody } from './raw-body.js'

/** What a receiver's functions get: Node's request, or Fetch's. */
export type AnyRequest = IncomingMessage | Request

/** One delivery, whichever kind of request brought it. */
export interface Delivery<Req extends AnyRequest> {
  readonly request: Req
  readonly method: string
  /** With names in lower case. */
  readonly headers: IncomingHttpHeaders
  readBody(maxBytes: number): Promise<RawBody>
  isAbandoned(): boolean
  readonly waitUntil?: WaitUntil | undefined
}

export function nodeDelivery<Req extends AnyRequest>(request: Req & IncomingMessage): Delivery<Req> {
  return {
    request,
    method: request.method ?? '',
    headers: request.headers,
    readBody: (maxBytes) => readRawBody(request, maxBytes),
    isAbandoned: () => request.socket?.destroyed,
  }
}

export function fetchDelivery<Req extends AnyRequest>(
  request: Req & Request,
  waitUntil: WaitUntil | undefined,
): Delivery<Req> {
  const headers: IncomingHttpHeaders = Object.fromEntries(request.headers)
  return {
    request,
    method: request.method,
    headers,
    readBody: (maxBytes) => readFetchBody(request, headers, maxBytes),
    isAbandoned: () => request.signal.aborted,
    waitUntil,
  }
}

/** @throws IdempotencyError `raw_body_consumed`: somebody has read it, or is reading it. */
async function readFetchBody(request: Request, headers: IncomingHttpHeaders, maxBytes: number): Promise<RawBody> {
  if (request.bodyUsed || request.body?.locked) throw consumed()
  if (isEncoded(headers)) return { kind: 'encoded' }
  if (request.body === null) return { kind: 'whole', bytes: Buffer.alloc(0) }
  try {
    const bytes = await readAtMost(request.body, maxBytes)
    if (bytes === null) return { kind: 'too_large' }
    return { kind: 'whole', bytes: bufferOf(bytes) }
  } catch {
    return { kind: 'abandoned' } // The connection broke.
  }
}

function consumed(): IdempotencyError {
  return new IdempotencyError(
    'raw_body_consumed',
    "The request's body was read before the webhook receiver, and the signature covers its raw bytes. Pass the request unread, and " +
      'read a copy before: `await request.clone().json()`.',
  )
}

/** "200 OK"; the document shows no body. */
export const ACKNOWLEDGED: Answer = { status: 200, statusMessage: '', headers: [], body: Buffer.alloc(0) }

/** The answer inside a handler's transaction: the event counts as acknowledged once the transaction's work resolves. */
export class HandledDelivery implements HeldAnswer {
  isAcknowledged = false
  readonly #run: RequestRun

  constructor(run: RequestRun) {
    this.#run = run
  }

  entered(): void {}

  reset(): void {
    this.isAcknowledged = false
  }

  resolved(): void {
    this.isAcknowledged = true
    void this.#run.settle(ACKNOWLEDGED)
  }

  /** That the handler resolves is the answer. */
  leftBehind(): boolean {
    return true
  }

  left(): void {}
}
