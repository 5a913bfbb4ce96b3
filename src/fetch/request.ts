import { IdempotencyError } from '../core/index.js'
import { comparableBody, type ReadBody, type RequestEngine, type RequestFacts, readAtMost } from '../http/index.js'

/** A request as Fetch has it, and what the option functions are given of it. */
export interface Call<Req> {
  readonly request: Request
  readonly asked: Req
  /** Is given promises, which never reject, of what must end before the platform may stop. */
  readonly waitUntil?: ((pending: Promise<void>) => void) | undefined
  /** How much of its body is read to compare it, in bytes. */
  readonly maxBodyBytes: number
  /** A body that somebody has read and kept, for a framework that does so; `null`: its bytes were not kept. */
  readonly keptBody?: () => Promise<Uint8Array | null>
  /** The response's headers as they are before the handler, for a framework that has one then: they are nobody's answer. */
  readonly headers?: () => Headers
}

/**
 * What a binding tells of a request. Its body is read from a copy, and only where it matters: the request stays whole, and is
 * the very object that the platform has made.
 *
 * @throws IdempotencyError `raw_body_consumed`: somebody has read the body before.
 */
export async function factsOf<Req>(engine: RequestEngine<Req>, call: Call<Req>): Promise<RequestFacts<Req>> {
  const { request, asked } = call
  const { method } = request
  const rawHeaders = [...request.headers].flat()
  const read = engine.readsBody({ method, rawHeaders }) ? await bodyOf(call, rawHeaders) : UNREAD
  return {
    request: asked,
    method,
    target: targetOf(request),
    rawHeaders,
    ...read,
    isAbandoned: () => request.signal.aborted,
  }
}

const UNREAD: ReadBody = { body: undefined, bodyWasRead: true }

/** Path and query, in URL normal form. */
function targetOf({ url }: Request): string {
  const [withoutFragment = ''] = url.split('#', 1)
  return withoutFragment.slice(new URL(url).origin.length)
}

async function bodyOf(
  { request, maxBodyBytes, keptBody }: Call<unknown>,
  rawHeaders: readonly string[],
): Promise<ReadBody> {
  if (request.bodyUsed) {
    const bytes = keptBody === undefined ? null : await keptBody()
    if (bytes === null) throw bodyConsumed()
    return bytes.byteLength > maxBodyBytes ? TOO_LARGE : comparableBody(bytes, rawHeaders)
  }
  const { body } = request.clone()
  if (body === null) return UNREAD
  const bytes = await readAtMost(body, maxBodyBytes)
  return bytes === null ? TOO_LARGE : comparableBody(bytes, rawHeaders)
}

const TOO_LARGE: ReadBody = { body: undefined, bodyWasRead: true, bodyFault: 'too_large' }

function bodyConsumed(): IdempotencyError {
  return new IdempotencyError(
    'raw_body_consumed',
    "The request's body was read before the library saw it, so it cannot be compared with that of an earlier request. Hand the " +
      'request over unread, and read a copy of it before: `await request.clone().json()`.',
  )
}
