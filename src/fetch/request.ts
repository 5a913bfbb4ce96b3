import { IdempotencyError, type MaybePromise } from '../core/index.js'
import {
  parseComparableBody,
  type ReadBody,
  type RequestEngine,
  type RequestFacts,
  readBodyCopy,
  type WaitUntil,
} from '../http/index.js'

/** A Fetch request, and what the option functions receive for it. */
export interface FetchCall<Req> {
  readonly request: Request
  readonly asked: Req
  /** Of the platform. Called once, and only for a request that does not pass untouched. */
  readonly waitUntil: () => WaitUntil | undefined
  /** The maximum size of its body for comparison, in bytes. */
  readonly maxBodyBytes: number
  /** A body that a framework has read and kept; `null`: its bytes were not kept. */
  readonly keptBody?: () => Promise<Uint8Array | null>
  /** Whether the caller sends a Response that the handler throws. If not, it is an error like any other. */
  readonly sendsThrown: boolean
  /** The response's headers before the handler, if the framework has any: they do not belong to the answer. */
  readonly headers?: () => Headers
}

/**
 * The facts about a request, at once unless its body is read. Its body is read from a copy, and only if it matters: the handler gets
 * the platform's own request object, unread.
 *
 * @throws IdempotencyError `raw_body_consumed`: somebody has read the body, or is reading it.
 */
export function createRequestFacts<Req>(
  engine: RequestEngine<Req>,
  call: FetchCall<Req>,
): MaybePromise<RequestFacts<Req>> {
  const { request } = call
  const rawHeaders = [...request.headers].flat()
  if (!engine.readsBody({ method: request.method, rawHeaders })) return new FetchFacts(call, rawHeaders, UNREAD)
  return readBodyBytes(call).then((bytes) => {
    if (isBodyLost(bytes, request)) throw bodyConsumedError()
    return new FetchFacts(call, rawHeaders, readBody(bytes, call, rawHeaders))
  })
}

class FetchFacts<Req> implements RequestFacts<Req> {
  readonly request: Req
  readonly rawHeaders: readonly string[]
  readonly joinsHeaderLines = true
  readonly body: unknown
  readonly bodyWasRead: boolean
  readonly bodyIsEmpty: RequestFacts['bodyIsEmpty']
  readonly bodyFault: RequestFacts['bodyFault']
  readonly #fetched: Request

  constructor({ request, asked }: FetchCall<Req>, rawHeaders: readonly string[], read: ReadBody) {
    this.#fetched = request
    this.request = asked
    this.rawHeaders = rawHeaders
    this.body = read.body
    this.bodyWasRead = read.bodyWasRead
    this.bodyIsEmpty = read.bodyIsEmpty
    this.bodyFault = read.bodyFault
  }

  get method(): string {
    return this.#fetched.method
  }

  get target(): string {
    return getRequestTarget(this.#fetched)
  }

  isAbandoned(): boolean {
    return this.#fetched.signal?.aborted === true // Not every package gives its requests one.
  }
}

const UNREAD: ReadBody = { body: undefined, bodyWasRead: true }

/** Path and query, in URL normal form. */
function getRequestTarget({ url }: Request): string {
  const [withoutFragment = ''] = url.split('#', 1)
  return withoutFragment.slice(new URL(url).origin.length)
}

/** `null`: it is too large; `undefined`: there is none. */
function readBodyBytes({
  request,
  maxBodyBytes,
  keptBody,
}: FetchCall<unknown>): Promise<Uint8Array | null | undefined> {
  return isBodyConsumed(request) ? readKeptBytes(keptBody) : readBodyCopy(request, maxBodyBytes)
}

/** Of whichever copy of Fetch. */
export function isRequest(given: Request | undefined): given is Request {
  return typeof given?.headers?.get === 'function'
}

/** Whether somebody has read its body, or is reading it. */
export function isBodyConsumed({ bodyUsed, body }: Request): boolean {
  return bodyUsed || body?.locked === true
}

/** A body was sent, and is not there: another package's request may not tell that somebody has read it. */
export function isBodyLost(bytes: Uint8Array | null | undefined, { headers }: Request): boolean {
  return bytes !== null && !bytes?.byteLength && Number(headers.get('Content-Length')) > 0
}

async function readKeptBytes(keptBody: FetchCall<unknown>['keptBody']): Promise<Uint8Array> {
  const bytes = keptBody === undefined ? null : await keptBody()
  if (bytes === null) throw bodyConsumedError()
  return bytes
}

function readBody(
  bytes: Uint8Array | null | undefined,
  { maxBodyBytes }: FetchCall<unknown>,
  rawHeaders: readonly string[],
): ReadBody {
  if (bytes === undefined) return EMPTY
  return bytes === null || bytes.byteLength > maxBodyBytes ? TOO_LARGE : parseComparableBody(bytes, rawHeaders)
}

const EMPTY: ReadBody = { body: undefined, bodyWasRead: true, bodyIsEmpty: true }

const TOO_LARGE: ReadBody = { body: undefined, bodyWasRead: true, bodyFault: 'too_large' }

export function bodyConsumedError(
  reader = 'library',
  consequence = 'it cannot be compared with that of an earlier request',
): IdempotencyError {
  return new IdempotencyError(
    'raw_body_consumed',
    `The request's body was read before the ${reader}, so ${consequence}. Pass the request unread, and read a copy before: ` +
      '`await request.clone().json()`.',
  )
}
