import { Buffer } from 'node:buffer'
import type { Answer } from '../../core/record/record.js'
import { isHeaderName } from '../options/option-rules.js'
import type { KeepHeader } from '../options/options.js'

/** The stored answer, marked as a replay. */
export function markAsReplay(answer: Answer): Answer {
  return { ...answer, headers: answer.headers.concat([REPLAYED]) }
}

const REPLAYED = ['Idempotent-Replayed', 'true'] as const

/**
 * The answer as it is stored: without headers that a replay must not contain, and without a body that could not be
 * sent.
 */
export function toStoredAnswer(answer: Answer, keepHeader: KeepHeader): Answer {
  const { status, statusMessage, body } = answer
  let headers: Answer['headers'][number][] = []
  let connection = ''
  for (const header of answer.headers) {
    const name = header[0].toLowerCase()
    if (isKept(name, header[1], answer, keepHeader)) headers.push(header)
    else if (name === 'connection') connection += `,${header[1]}`
  }
  if (connection !== '') headers = removeConnectionHeaders(headers, connection)
  // Headers that belong to one connection were left out above.
  const mayKeepBody = isSendableHead(answer) && headers.every(([name, value]) => isHeaderLine(name, value))
  return { status, statusMessage, headers, body: mayKeepBody ? body : null }
}

function isKept(lowerCaseName: string, value: string, answer: Answer, keepHeader: KeepHeader): boolean {
  return lowerCaseName === 'content-length'
    ? isContentLengthOf(answer, value) // Kept if it fits the body; not an option's choice.
    : !HOP_BY_HOP.has(lowerCaseName) && keepHeader(lowerCaseName, !NOT_BY_DEFAULT.has(lowerCaseName))
}

/** RFC 9110 §7.6.1: Connection lists further fields that belong to this connection. */
function removeConnectionHeaders(headers: Answer['headers'], connection: string): Answer['headers'][number][] {
  const named = new Set(
    connection
      .toLowerCase()
      .split(',')
      .map((name) => name.trim()),
  )
  return headers.filter(([name]) => !named.has(name.toLowerCase()))
}

/**
 * Whether an answer can be sent. The library never stores one that cannot: such a record is damaged, or was written by
 * somebody else, for example with a header that would split the response in two.
 */
export function isSendable(answer: Answer): boolean {
  return isSendableHead(answer) && answer.headers.every((header) => isSendableHeader(header, answer))
}

function isSendableHead({ status, statusMessage }: Answer): boolean {
  return status >= 200 && status <= 599 && (statusMessage === '' || TEXT_OF_HEAD.test(statusMessage))
}

function isHeaderLine(name: string, value: string): boolean {
  return isHeaderName(name) && TEXT_OF_HEAD.test(value)
}

function isSendableHeader([name, value]: Answer['headers'][number], answer: Answer): boolean {
  const lowerCaseName = name.toLowerCase()
  if (HOP_BY_HOP.has(lowerCaseName) || !isHeaderLine(name, value)) return false
  return lowerCaseName !== 'content-length' || isContentLengthOf(answer, value)
}

/** Whether a handler's header can be sent with a body that was held: the framing is the server's, and made for that body. */
export function fitsBufferedBody(
  [name, value]: Answer['headers'][number],
  held: Pick<Answer, 'status' | 'body'>,
): boolean {
  const lowerCaseName = name.toLowerCase()
  return !OF_CONNECTION.has(lowerCaseName) && (lowerCaseName !== 'content-length' || isContentLengthOf(held, value))
}

/** Describes the expected answer if this one cannot be sent; `null` if it can. */
export function findSendingFault(answer: Answer): string | null {
  return isSendable(answer) ? null : SENDABLE
}

const SENDABLE =
  'an answer that can be sent (a status from 200 to 599, no header of one connection, a Content-Length that is the body’s; ' +
  'one that was stored sealed is opened by `sealed(store, { keys })`)'

/** RFC 9112 §4, "reason-phrase", and RFC 9110 §5.5, "field-value", each character a byte: "CR, LF, and NUL characters are invalid and dangerous". */
const TEXT_OF_HEAD = /^[\t\x20-\x7e\x80-\xff]*$/

/** RFC 9110 §8.6: after HEAD, and with 204 and 304, the length is that of a body which is not sent. */
function isContentLengthOf({ status, body }: Pick<Answer, 'status' | 'body'>, length: string): boolean {
  if (body === null || body.byteLength === 0 || status === 204 || status === 304) return /^\d+$/.test(length)
  return length === String(body.byteLength)
}

/** Groups lines with the same name under its first spelling, for `setHeader`, which takes one value per name. */
export function groupHeadersByName(
  headers: Answer['headers'],
): readonly (readonly [name: string, value: string | string[]])[] {
  if (headers.length <= FEW_HEADERS && !hasRepeatedName(headers)) return headers
  const byName = new Map<string, [name: string, value: string | string[]]>()
  for (const [name, value] of headers) {
    const lowerCaseName = name.toLowerCase()
    const lines = byName.get(lowerCaseName)
    if (lines === undefined) byName.set(lowerCaseName, [name, value])
    else lines[1] = [lines[1], value].flat()
  }
  return [...byName.values()]
}

/** So many are compared one by one, which needs no map. */
const FEW_HEADERS = 16

function hasRepeatedName(headers: Answer['headers']): boolean {
  return headers.some(([name], i) => {
    for (let before = 0; before < i; before++) if (isSameName(headers[before]?.[0] as string, name)) return true
    return false
  })
}

function isSameName(one: string, other: string): boolean {
  return one.length === other.length && one.toLowerCase() === other.toLowerCase()
}

/** The default of `isSuccess`: 200 to 399 except 307 and 308, which ask the client to repeat the request. */
export function isSuccessStatus(status: number): boolean {
  return status >= 200 && status <= 399 && status !== 307 && status !== 308
}

/** An event stream (WHATWG HTML §9.2) does not end by itself. */
export function isEventStream(contentType: unknown): boolean {
  return typeof contentType === 'string' && /^\s*text\/event-stream\s*(?:;|$)/i.test(contentType)
}

/** Registered, so that an ES module and a CommonJS copy of the library know each other's. */
const REPLY = Symbol.for('once-per-key: reply')

/** An answer that can be read at once, which a `Response` cannot: for transactions that are synchronous. */
export interface Reply {
  readonly [REPLY]: true
  readonly status: number
  readonly body: Uint8Array | null
  readonly headers: readonly (readonly [name: string, value: string])[]
}

/**
 * The answer of a transaction on SQLite, whose work must return it at once: `body` a string or bytes as they are, an object as JSON.
 *
 * @example
 * await store.transaction(context, (tx) => {
 *   tx.prepare('INSERT INTO payouts (id) VALUES (?)').run(id)
 *   return reply(201, { id })
 * })
 */
export function reply(
  status: number,
  body?: string | Uint8Array | object | null,
  headers: Readonly<Record<string, string>> = {},
): Reply {
  const isJson = typeof body === 'object' && body !== null && !(body instanceof Uint8Array)
  const given = Object.entries(headers)
  const hasType = given.some(([name]) => name.toLowerCase() === 'content-type')
  return {
    [REPLY]: true,
    status,
    body: encodeReplyBody(body),
    headers:
      hasType || !body || body instanceof Uint8Array ? given : [['Content-Type', isJson ? JSON_TYPE : TEXT], ...given],
  }
}

/** As `Response.json` and `new Response` with a text name them. */
const JSON_TYPE = 'application/json'
const TEXT = 'text/plain;charset=UTF-8'

export function isReply(value: unknown): value is Reply {
  return typeof value === 'object' && value !== null && REPLY in value
}

function encodeReplyBody(body: string | Uint8Array | object | null | undefined): Uint8Array | null {
  if (body === undefined || body === null) return null
  if (body instanceof Uint8Array) return body
  return Buffer.from(typeof body === 'string' ? body : JSON.stringify(body))
}

/** RFC 9110 §7.6.1: fields to be removed or replaced before forwarding. */
const OF_CONNECTION = new Set([
  'connection',
  'keep-alive',
  'proxy-connection',
  'te',
  'trailer',
  'transfer-encoding',
  'upgrade',
])

/** Headers of one connection, or of the framing, which is made anew for each response: no option can keep them. */
const HOP_BY_HOP = new Set([
  ...OF_CONNECTION,
  'proxy-authenticate',
  'proxy-authorization',
  // Our own: an answer that was itself a forwarded replay must not contain it twice.
  'idempotent-replayed',
])

/**
 * The headers, in lower case, without which nobody can read the bytes of a body. They belong to the answer, whoever has set them, and
 * a replay has only those that the answer has.
 */
export const bodyHeaders: ReadonlySet<string> = new Set(['content-type', 'content-encoding'])

/** Headers of one moment, or of one client's session. */
const NOT_BY_DEFAULT = new Set(['date', 'set-cookie'])
