import type { Answer } from 'once-per-key/core'
import type { RequestFacts } from 'once-per-key/http'

/** A request as a binding would describe it. */
export interface Request {
  readonly key?: string | null
  readonly method?: string
  readonly target?: string
  /** Header lines besides the key's. */
  readonly headers?: readonly (readonly [name: string, value: string])[]
  readonly body?: unknown
  readonly bodyWasRead?: boolean
  readonly bodyFault?: 'too_large' | 'too_many_fields' | 'malformed'
  readonly scope?: string
  readonly isAbandoned?: () => boolean
}

/** A payout under the key `order-1`, unless told otherwise. `key: null`: without the header. */
export function requestFacts(request: Request = {}): RequestFacts<Request> {
  const { key = 'order-1', headers = [], body = { amount: 100 } } = request
  const lines = key === null ? headers : [['Idempotency-Key', key] as const, ...headers]
  return {
    request,
    method: request.method ?? 'POST',
    target: request.target ?? '/payouts',
    rawHeaders: lines.flat(),
    body: 'body' in request ? request.body : body,
    bodyWasRead: request.bodyWasRead ?? true,
    bodyFault: request.bodyFault,
    isAbandoned: request.isAbandoned ?? (() => false),
  }
}

/** What a handler answers: 201 and a small JSON body, unless told otherwise. */
export function answer(status = 201, text = '{"id":"po_1"}'): Answer {
  return { status, statusMessage: '', headers: [['Content-Type', 'application/json']], body: Buffer.from(text) }
}
