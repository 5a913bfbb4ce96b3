import type { Answer } from '../core/index.js'
import { bodyHeaders, fitsBufferedBody, type HeaderPairs, toBodyStream } from '../http/index.js'

/** By its members, because a server may use its own class instead of the platform's. */
export function isResponse(value: unknown): value is Response {
  if (typeof value !== 'object' || value === null) return false
  try {
    const { status, headers, arrayBuffer } = value as Partial<Response>
    return typeof status === 'number' && typeof headers?.get === 'function' && typeof arrayBuffer === 'function'
  } catch {
    return false // What a handler throws may have getters that throw.
  }
}

/**
 * Fetch §2.2.3: "A null body status is a status that is 101, 103, 204, 205, or 304." @hono/node-server's Response takes a body with one,
 * but throws when it is read, even if it is an empty one.
 */
const NULL_BODY = new Set([204, 205, 304])

/** What is sent of a response. */
export interface ResponseParts extends Pick<Response, 'status' | 'statusText' | 'headers'> {
  readonly body: ReadableStream<Uint8Array> | null
}

/**
 * The parts of a response that can be held. Of another package's class each has the platform's form, and what is missing has the default
 * that the standard gives it.
 *
 * @throws whatever reading them throws, and TypeError for what no response can have.
 */
export function readResponse(given: Response): ResponseParts {
  const isEmpty = NULL_BODY.has(given.status)
  const isOfPlatform: boolean = given instanceof Response
  if (isOfPlatform) return isEmpty ? new Response(null, given) : given
  const head = { status: given.status, statusText: given.statusText ?? '', headers: [...given.headers] }
  const { status, statusText, headers } = new Response(null, head)
  return { status, statusText, headers, body: isEmpty ? null : toBodyStream(given) }
}

/** The same of a response that stays unread. */
export function readResponseCopy(given: Response): ResponseParts {
  return readResponse(NULL_BODY.has(given.status) ? given : given.clone())
}

/** `Response.error()` and upgrades cannot be held or made again. */
export function canBeBuffered(response: Response): boolean {
  const { status } = response
  return status >= 200 && status <= 599 && (NULL_BODY.has(status) || !response.bodyUsed)
}

/**
 * Whether the handler has written its answer below Fetch, to Node's own response: @hono/node-server sends nothing for a response with this
 * header. Made anew, it would be sent.
 */
export function isSentByNode({ headers }: ResponseParts): boolean {
  return headers.has('x-hono-already-sent')
}

/** The head of a response as stored: with the headers that were set or changed after `before`, and those of the body. */
export function toStoredHead(
  { status, statusText, headers }: ResponseParts,
  before: Headers | undefined,
): Omit<Answer, 'body'> {
  const all = [...headers]
  return { status, statusMessage: statusText, headers: before === undefined ? all : pickChangedHeaders(before, all) }
}

function pickChangedHeaders(before: Headers, headers: [string, string][]): [string, string][] {
  const cookies = before.getSetCookie()
  return headers.filter(([name, value]) =>
    name === 'set-cookie' ? !cookies.includes(value) : before.get(name) !== value || bodyHeaders.has(name),
  )
}

/** An answer to a request of that method, with the headers `before`; `extraHeaders` belong to this one request. */
export function toResponse(answer: Answer, method: string, extraHeaders: HeaderPairs = [], before?: Headers): Response {
  const headers = new Headers(before)
  for (const name of bodyHeaders) headers.delete(name) // Of earlier middleware, and perhaps of another body.
  // Each line is one cookie: cookies from both sources are kept.
  for (const [name] of answer.headers) if (name.toLowerCase() !== 'set-cookie') headers.delete(name)
  for (const [name, value] of answer.headers) headers.append(name, value)
  return rebuildResponse(
    { status: answer.status, statusText: answer.statusMessage, headers },
    answer.body,
    method,
    extraHeaders,
  )
}

/** A response with another body, because its own has been read: without headers that describe another framing. */
export function rebuildResponse(
  { status, statusText, headers }: Pick<Response, 'status' | 'statusText' | 'headers'>,
  body: Uint8Array | ReadableStream<Uint8Array> | null,
  method: string,
  extraHeaders: HeaderPairs = [],
): Response {
  const bytes = body !== null && 'byteLength' in body ? body : null
  const isEmpty = body === null || NULL_BODY.has(status) || bytes?.byteLength === 0
  const held = { status, body: bytes }
  const own = new Headers() // @hono/node-server's Response would share those of the handler's.
  for (const header of headers) if (fitsBufferedBody(header, held)) own.append(header[0], header[1])
  // RFC 9110 §8.6: after HEAD and with 304 it is that of a body which is not sent; elsewhere the client would wait for one.
  const announcesBody = isEmpty && method !== 'HEAD' && status !== 304 && own.get('Content-Length') !== '0'
  if (announcesBody) own.delete('Content-Length')
  for (const [name, value] of extraHeaders) {
    if (name === 'Link')
      own.append(name, value) // The handler may have links of its own.
    else own.set(name, value)
  }
  return new Response(isEmpty ? null : (body as SendableBody), { status, statusText, headers: own })
}

/** Stores and streams never hold shared memory. */
type SendableBody = Uint8Array<ArrayBuffer> | ReadableStream<Uint8Array<ArrayBuffer>>
