import type { Answer } from '../core/index.js'
import type { HeaderPairs } from '../http/index.js'

/** By its form: a server may bring a class of its own beside the platform's. */
export function isResponse(value: unknown): value is Response {
  if (typeof value !== 'object' || value === null) return false
  const { status, headers, arrayBuffer } = value as Partial<Response>
  return typeof status === 'number' && typeof headers?.get === 'function' && typeof arrayBuffer === 'function'
}

/** `Response.error()` and an upgrade are no answers that could be held, or made again. */
export function canBeHeld({ status, bodyUsed }: Response): boolean {
  return status >= 200 && status <= 599 && !bodyUsed
}

/** A response's head, as it is stored: with the headers that were set or changed since `before`. */
export function headOf(
  { status, statusText, headers }: Response,
  before: Headers = new Headers(),
): Omit<Answer, 'body'> {
  const cookies = before.getSetCookie()
  const changed = [...headers].filter(([name, value]) =>
    name === 'set-cookie' ? !cookies.includes(value) : before.get(name) !== value,
  )
  return { status, statusMessage: statusText, headers: changed }
}

/** Fetch §2.2.3: "A null body status is a status that is 101, 103, 204, 205, or 304." */
const NULL_BODY = new Set([204, 205, 304])

/** The body that a response to such a request has; `null`: none, or none that is sent. */
export function bodyOf({ status, body }: Response, method: string): ReadableStream<Uint8Array> | null {
  return method === 'HEAD' || NULL_BODY.has(status) ? null : body
}

/** An answer as a response, over the headers `before`; `extraHeaders` are of this one request. */
export function responseOf(answer: Answer, extraHeaders: HeaderPairs = [], before?: Headers): Response {
  const headers = new Headers(before)
  for (const [name] of answer.headers) if (!isCookie(name)) headers.delete(name)
  for (const [name, value] of answer.headers) headers.append(name, value)
  return rebuilt({ status: answer.status, statusText: answer.statusMessage, headers }, answer.body, extraHeaders)
}

/** One line is one cookie: those of two sources stand side by side. */
function isCookie(name: string): boolean {
  return name.toLowerCase() === 'set-cookie'
}

/** A response with another body: its own has been read. */
export function rebuilt(
  { status, statusText, headers }: Pick<Response, 'status' | 'statusText' | 'headers'>,
  body: Uint8Array | ReadableStream<Uint8Array> | null,
  extraHeaders: HeaderPairs = [],
): Response {
  const isEmpty = body === null || NULL_BODY.has(status) || ('byteLength' in body && body.byteLength === 0)
  const response = new Response(isEmpty ? null : (body as Sendable), { status, statusText, headers })
  for (const [name, value] of extraHeaders) response.headers.append(name, value)
  return response
}

/** What stores and streams hold is never shared memory. */
type Sendable = Uint8Array<ArrayBuffer> | ReadableStream<Uint8Array<ArrayBuffer>>
