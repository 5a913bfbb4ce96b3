import type { Buffer } from 'node:buffer'
import type { IncomingMessage, OutgoingHttpHeader, OutgoingHttpHeaders, ServerResponse } from 'node:http'
import { bodyHeaders, type HeaderPairs } from '../http/index.js'
import * as faked from './faked.js'
import { getHeaderMap, getHeaderValue, type HeaderMap, isSameHeaderValue } from './headers.js'
import { copyBytes, MAX_BYTES_AS_TEXT } from './held-body.js'
import { invalidStatusError, invalidStatusMessageError } from './node-errors.js'
import { areUnwrappedNodeMethods, hasNodeEnd, type OriginalMethods } from './sending/outlet.js'

/** The head that a handler handed over with its first byte, or with `writeHead`. */
export interface ResponseHead {
  readonly status: number
  readonly statusMessage: string
  /** Those that were set or changed after the middleware. */
  readonly headers: HeaderPairs
  /** If false, Node chooses the bytes on the wire: see `toWireHead`. */
  readonly isAscii: boolean
  /** Its texts are the bytes on the wire, one character per byte. */
  readonly isAsOnWire?: true
}

/** Those of a response that is to be sent. */
export function createResponseHead(status: number, statusMessage: string, headers: HeaderPairs): ResponseHead {
  return { status, statusMessage, headers, isAscii: isAsciiHead(statusMessage, headers) }
}

/**
 * An empty reason phrase, which only `writeHead(status, '')` sends. In records, '' means the status's default phrase;
 * this value is one that nobody would write.
 */
export const NO_REASON = ' '

/** The `headers` argument of `writeHead`: an object, a flat array, or pairs. */
type HeadArgument =
  | OutgoingHttpHeaders
  | readonly OutgoingHttpHeader[]
  | readonly (readonly [string, OutgoingHttpHeader])[]

/** RFC 9110 §6.4.1: no content after HEAD, and none with 1xx, 204 and 304. */
export function mayHaveBody(req: IncomingMessage, status: number): boolean {
  return req.method !== 'HEAD' && status !== 204 && status !== 304 && status >= 200
}

/** Without a body the head would already be the whole answer. */
export function canStream(req: IncomingMessage, res: ServerResponse): boolean {
  return mayHaveBody(req, res.statusCode) && Number(getHeaderValue(res, 'content-length')) !== 0
}

/** Does to `res` what Node's `writeHead` would, except writing, and reads the result. Throws what Node would throw. */
export function applyWriteHead(
  req: IncomingMessage,
  res: ServerResponse,
  before: HeaderMap,
  status: number,
  reason: unknown,
  headers: unknown,
  outlet: OriginalMethods,
): ResponseHead {
  if (!(status >= 100 && status <= 999)) throw invalidStatusError(status)
  if (typeof reason === 'string') res.statusMessage = reason
  const statusMessage = reason === '' ? NO_REASON : `${res.statusMessage || ''}` // Node converts any value to a string.
  if (statusMessage !== '' && /[^\t\x20-\x7e\x80-\xff]/.test(statusMessage)) throw invalidStatusMessageError()
  const given = typeof reason === 'string' ? headers : (headers ?? reason)
  if (given !== undefined && given !== null) setHeadArgument(res, given as HeadArgument)
  res.statusCode = Math.trunc(status)
  keepOneFraming(req, res)
  // Otherwise the length is computed again.
  const keepLength = !mayHaveBody(req, res.statusCode) || !hasNodeEnd(outlet)
  return createResponseHead(res.statusCode, statusMessage, diffHeaders(before, getHeaderMap(res), keepLength))
}

/** Whether Node would send these texts as they are, whatever follows them. */
export function isAsciiHead(statusMessage: string, headers: HeaderPairs): boolean {
  return !NOT_ASCII.test(statusMessage) && headers.every(([, value]) => !NOT_ASCII.test(value))
}

const NOT_ASCII = /[\x80-\xff]/

/** A failure's status that is set after the head was handed over, as error handlers do, means that what was handed over is wrong. */
export function isHeadStale(head: ResponseHead | undefined, { statusCode }: ServerResponse): boolean {
  return head !== undefined && statusCode !== head.status && statusCode >= 400
}

/** The handler announced more bytes than it wrote: it was cut off itself, for example by its upstream. */
export function isCutShort(req: IncomingMessage, res: ServerResponse, body: Uint8Array): boolean {
  return Number(getHeaderValue(res, 'content-length')) > body.byteLength && mayHaveBody(req, res.statusCode)
}

/** Whether a replay of these bytes would be the handler's response. */
export function isReplayableBody(req: IncomingMessage, res: ServerResponse, body: Uint8Array): boolean {
  return !isCutShort(req, res, body) && !hasTransferCoding(getHeaderValue(res, 'transfer-encoding'))
}

/**
 * RFC 9112 §6.1: a transfer coding other than `chunked` changes the bytes, and belongs to one connection. A replay
 * would lack it.
 */
export function hasTransferCoding(codings: OutgoingHttpHeader | undefined): boolean {
  if (codings === undefined) return false
  return `${codings}`.split(',').some((coding) => !/^\s*(?:chunked|identity)\s*$/i.test(coding))
}

/**
 * RFC 9112 §6.2: "A sender MUST NOT send a Content-Length header field in any message that contains a Transfer-Encoding header
 * field." §6.1: not to HTTP/1.0 either. And §7: a coding named "identity" no longer exists.
 */
function keepOneFraming(req: IncomingMessage, res: ServerResponse): void {
  const codings = getHeaderValue(res, 'transfer-encoding')
  if (codings === undefined) return
  const isUsed = hasTransferCoding(codings) || (/chunked/i.test(`${codings}`) && req.httpVersion !== '1.0')
  res.removeHeader(isUsed ? 'Content-Length' : 'Transfer-Encoding')
}

/** Headers that were set or changed after `before`, and those of the body: whole values, one line each. */
export function diffHeaders(before: HeaderMap, now: HeaderMap, keepLength: boolean): HeaderPairs {
  const changed: HeaderPairs[number][] = []
  for (const lowerCaseName in now) {
    const [name, value] = now[lowerCaseName] as HeaderMap[string]
    if (lowerCaseName === 'content-length' && !keepLength) continue
    if (isSameHeaderValue(before[lowerCaseName]?.[1], value) && !bodyHeaders.has(lowerCaseName)) continue
    if (Array.isArray(value)) for (const line of value) changed.push([name, String(line)])
    else changed.push([name, String(value)])
  }
  return changed
}

/** A response that its handler ended with all of its body at once. `sent`: what Node's own `end` is given once it is stored. */
export interface WholeResponse {
  readonly head: ResponseHead
  readonly body: Buffer
  readonly sent: Buffer | string
}

interface ObservedResponse {
  readonly req: IncomingMessage
  readonly res: ServerResponse
  /** Its headers before the handler. */
  readonly before: HeaderMap
  readonly outlet: OriginalMethods
}

/**
 * Captures a short response about whose head and length Node has nothing to decide, as nearly every response is. Node then writes it from
 * what the handler has set. `undefined`: the response needs `applyWriteHead` and `sendWhole`.
 */
export function captureWholeResponse(
  { req, res, before, outlet }: ObservedResponse,
  chunk: unknown,
  encoding: unknown,
): WholeResponse | undefined {
  if (!areUnwrappedNodeMethods(outlet) || !faked.areMethodsOurs(res) || !faked.announcesLength(res)) return undefined
  const { statusCode: status } = res
  if (!Number.isInteger(status) || status > 599 || !mayHaveBody(req, status) || res.statusMessage) return undefined
  if (!isShort(chunk)) return undefined
  const body = copyBytes(chunk, encoding)
  const headers = diffPlainHeaders(before, getHeaderMap(res), body.byteLength)
  if (headers === undefined) return undefined
  // UTF-8 has as many bytes as the text has characters only if all of them are ASCII.
  const isAscii = typeof chunk === 'string' && chunk.length === body.byteLength && isUtf8(encoding)
  return { head: { status, statusMessage: '', headers, isAscii: true }, body, sent: isAscii ? chunk : body }
}

/** A longer one would be copied twice where it is not captured, and is not sent as text. */
function isShort(chunk: unknown): boolean {
  const { length } = chunk as { readonly length?: unknown }
  return typeof length === 'number' && length <= MAX_BYTES_AS_TEXT
}

/** The default, too. */
function isUtf8(encoding: unknown): boolean {
  return typeof encoding !== 'string' || encoding === 'utf8' || encoding === 'utf-8'
}

/** `diffHeaders` where every header is one line of plain ASCII, and the length is Node's to say; `undefined`: they are not. */
function diffPlainHeaders(before: HeaderMap, now: HeaderMap, byteLength: number): HeaderPairs | undefined {
  const changed: HeaderPairs[number][] = []
  for (const lowerCaseName in now) {
    const [name, value] = now[lowerCaseName] as HeaderMap[string]
    if (lowerCaseName === 'content-length') {
      if (String(value) !== String(byteLength)) return undefined
      continue
    }
    const isFraming = lowerCaseName === 'transfer-encoding' || lowerCaseName === 'trailer'
    const text = String(value)
    if (isFraming || typeof value === 'object' || NOT_PLAIN.test(text)) return undefined
    if (before[lowerCaseName]?.[1] !== value || bodyHeaders.has(lowerCaseName)) changed.push([name, text])
  }
  return changed
}

const NOT_PLAIN = /[^\t\x20-\x7e]/

/** Sets the headers of `writeHead`: they replace those with the same name, and may repeat a name. */
function setHeadArgument(res: ServerResponse, given: HeadArgument): void {
  if (!Array.isArray(given)) {
    for (const [name, value] of Object.entries(given as OutgoingHttpHeaders)) {
      if (value !== undefined) res.setHeader(name, value)
    }
    return
  }
  const pairs = Array.isArray(given[0]) ? given : toHeaderEntries(given)
  for (const [name] of pairs) res.removeHeader(name)
  for (const [name, value] of pairs) res.appendHeader(name, typeof value === 'number' ? String(value) : value)
}

function toHeaderEntries(flat: readonly OutgoingHttpHeader[]): [string, OutgoingHttpHeader][] {
  const pairs: [string, OutgoingHttpHeader][] = []
  for (let i = 0; i < flat.length; i += 2) pairs.push([String(flat[i]), flat[i + 1] as OutgoingHttpHeader])
  return pairs
}
