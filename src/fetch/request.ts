import { IdempotencyError } from '../core/index.js'
import { comparableBody, type ReadBody, type RequestEngine, type RequestFacts } from '../http/index.js'

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

/** `null`: there is more. */
async function readAtMost(body: ReadableStream<Uint8Array>, mostBytes: number): Promise<Uint8Array | null> {
  const chunks: Uint8Array[] = []
  let byteLength = 0
  const reader = body.getReader()
  for (let next = await reader.read(); !next.done; next = await reader.read()) {
    byteLength += next.value.byteLength
    if (byteLength > mostBytes) {
      reader.cancel().catch(() => {}) // It resolves when the request itself is read or cancelled.
      return null
    }
    chunks.push(next.value)
  }
  return joined(chunks, byteLength)
}

/** Chunks in one piece, which is nobody else's. */
export function joined(chunks: readonly Uint8Array[], byteLength: number): Uint8Array<ArrayBuffer> {
  const bytes = new Uint8Array(byteLength)
  let at = 0
  for (const chunk of chunks) {
    bytes.set(chunk, at)
    at += chunk.byteLength
  }
  return bytes
}

function bodyConsumed(): IdempotencyError {
  return new IdempotencyError(
    'raw_body_consumed',
    "The request's body was read before the library saw it, so it cannot be compared with that of an earlier request. Hand the " +
      'request over unread, and read a copy of it before: `await request.clone().json()`.',
  )
}
