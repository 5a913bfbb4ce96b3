import { Buffer, isAscii } from 'node:buffer'
import { type IncomingMessage, ServerResponse } from 'node:http'
import type { Socket } from 'node:net'
import { Writable } from 'node:stream'
import type { Answer } from '../../core/index.js'
import { groupHeadersByName } from '../../http/answer/answer.js'
import { bodyHeaders, type HeaderPairs } from '../../http/index.js'
import * as faked from '../faked.js'
import { isCutShort, mayHaveBody, NO_REASON, type ResponseHead } from '../head.js'
import {
  assertSendableResponse,
  getHeaderValue,
  type HeaderMap,
  isHttp1,
  isSameHeaderValue,
  restoreHeaders,
  snapshotHeaders,
} from '../headers.js'
import { MAX_BYTES_AS_TEXT, toBuffer } from '../held-body.js'
import type { Callback } from '../node-errors.js'
import { getOriginalMethods, hasNodeEnd, hasNodeWrite, type OriginalMethods, type SendingMethods } from './outlet.js'

/** A response that is being sent. */
interface OutgoingResponse {
  readonly req: IncomingMessage
  readonly res: ServerResponse
  readonly extraHeaders: HeaderPairs
  readonly outlet: OriginalMethods
}

/** Sends an answer that the handler did not just make: a replay or a problem. */
export function sendAnswer(
  req: IncomingMessage,
  res: ServerResponse,
  answer: Answer,
  isReplay: boolean,
  extraHeaders: HeaderPairs = [],
  outlet: OriginalMethods = getOriginalMethods(res),
): void {
  assertSendableResponse(res)
  // The bytes may be the store's own, and a wrapped `end` may change them.
  const stored = answer.body ?? NO_BYTES
  const body = hasNodeEnd(outlet) ? stored : Buffer.from(stored)
  const before = snapshotHeaders(res)
  try {
    for (const name of bodyHeaders) res.removeHeader(name) // Of earlier middleware, and perhaps of another body.
    setHeaders(res, answer)
    if (mayHaveBody(req, answer.status) && (hasNodeEnd(outlet) || !isReplay || res.hasHeader('Content-Length'))) {
      res.setHeader('Content-Length', body.byteLength)
    }
    setHead(res, answer, extraHeaders)
    sendAll(res, answer, body, outlet)
  } catch (error) {
    // A hook on the head may throw. The application's error page must not contain this answer's headers.
    if (!res.headersSent) restoreHeaders(before, res)
    throw error
  }
}

/** Sends a response that `captureWholeResponse` has captured. Node writes its head. */
export function sendUnchanged(
  { res, extraHeaders, outlet }: OutgoingResponse,
  head: ResponseHead,
  body: Buffer | string,
): void {
  setHead(res, head, extraHeaders) // Whoever handles an error of the handler may have set another status by now.
  sendBody(res, body, outlet)
}

/** Sends the response as its handler made it, in one piece. */
export function sendWhole(
  { req, res, extraHeaders, outlet }: OutgoingResponse,
  head: ResponseHead,
  body: Uint8Array,
): void {
  if (head.isAsOnWire) setHeaders(res, head)
  const hasTrailers = faked.hasTrailers(res)
  // If the head is still pending, Node's `end` would announce a length, which excludes trailers; after removing one it
  // does not.
  const length = getHeaderValue(res, 'content-length')
  if (hasTrailers && length === undefined) res.removeHeader('Content-Length')
  // Trailers and the handler's own transfer encoding need chunks. A client must notice that an answer is cut short.
  const isChunked =
    hasTrailers ||
    getHeaderValue(res, 'trailer') !== undefined ||
    getHeaderValue(res, 'transfer-encoding') !== undefined
  const isCounted = hasNodeEnd(outlet) || length !== undefined
  if (isCounted && mayHaveBody(req, head.status) && !isChunked && !isCutShort(req, res, body)) {
    if (`${length}` !== `${body.byteLength}`) res.setHeader('Content-Length', body.byteLength)
  }
  setHead(res, head, extraHeaders)
  sendAll(res, head, body, outlet)
}

/**
 * Sends the head of a stream and the first piece of its body. Returns whether more may follow at once, rather than
 * after 'drain'.
 */
export function sendHeadAndFirstPiece(
  { res, extraHeaders, outlet }: OutgoingResponse,
  head: ResponseHead,
  body: Uint8Array,
  done: Callback | undefined,
): boolean {
  if (head.isAsOnWire) setHeaders(res, head)
  setHead(res, head, extraHeaders)
  if (body.byteLength === 0) {
    sendHead(res, head, outlet)
    if (head.isAsOnWire)
      outlet.write.call(res, NO_BYTES) // Flushing the head instead would send it as UTF-8.
    else outlet.flushHeaders.call(res)
    if (done !== undefined) process.nextTick(done)
    return true
  }
  if (hasNodeWrite(outlet)) {
    sendHead(res, head, outlet)
    return outlet.write.call(res, body, undefined, done)
  }
  // With the functions that the handler would see: a wrapper of `write` may set headers in it, read the head, and
  // ignore callbacks.
  if (done !== undefined) process.nextTick(done)
  const held = faked.replaceSendingMethods(res, outlet)
  try {
    return outlet.write.call(res, body) !== false
  } finally {
    faked.replaceSendingMethods(res, held)
  }
}

export function sendStreamEnd({ res, outlet }: OutgoingResponse, rest: Uint8Array): void {
  const held = faked.replaceSendingMethods(res, outlet)
  if (rest.byteLength === 0) outlet.end.call(res)
  else outlet.end.call(res, rest)
  restoreHeldMethods(res, held)
}

/** Hooks on the head (on-headers) read the status from `res`, which may have another message by now. */
function setHead(
  res: ServerResponse,
  { status, statusMessage }: Pick<ResponseHead, 'status' | 'statusMessage'>,
  extraHeaders: HeaderPairs,
): void {
  addHeaders(res, extraHeaders)
  res.statusCode = status
  if (isHttp1(res)) res.statusMessage = statusMessage === NO_REASON ? '' : statusMessage
}

export function addHeaders(res: ServerResponse, extraHeaders: HeaderPairs): void {
  for (const [name, value] of extraHeaders) {
    // Keeps a handler's own links beside the deprecation's; the other headers set here belong to this request only.
    if (name === 'Link') res.appendHeader(name, value)
    else res.setHeader(name, value)
  }
}

/** Explicitly, so that the hooks of earlier middleware run. */
function sendHead(
  res: ServerResponse,
  { status, statusMessage }: Pick<ResponseHead, 'status' | 'statusMessage'>,
  outlet: OriginalMethods,
): void {
  if (statusMessage === '') outlet.writeHead.call(res, status)
  else outlet.writeHead.call(res, status, statusMessage === NO_REASON ? '' : statusMessage)
}

/**
 * A wrapper of `end` may set headers, write, read the head, or end later, as when a handler calls it. So the head is
 * left to it, and until Node's own `end` has run the response has the functions that the wrapper expects.
 */
function sendAll(
  res: ServerResponse,
  head: Pick<ResponseHead, 'status' | 'statusMessage'>,
  body: Uint8Array,
  outlet: OriginalMethods,
): void {
  if (hasNodeEnd(outlet)) {
    sendHead(res, head, outlet)
    if (!faked.hasNodeEndRun(res)) sendBody(res, body, outlet) // A firewall in the process may have sent another answer.
    return
  }
  if (head.statusMessage === NO_REASON) sendHead(res, head, outlet) // Node sends an empty phrase only if writeHead has it.
  const held = faked.replaceSendingMethods(res, outlet)
  sendBody(res, body, outlet)
  restoreHeldMethods(res, held)
}

function restoreHeldMethods(res: ServerResponse, held: SendingMethods): void {
  if (faked.hasNodeEndRun(res)) faked.replaceSendingMethods(res, held)
  else res.once('finish', () => void faked.replaceSendingMethods(res, held))
}

/**
 * As bytes, because `end(string)` would write the head in the string's encoding and corrupt its non-ASCII characters,
 * and because a wrapped `end` may only handle bytes, as Express sends them. Node's own `end` gets Latin-1 text, one
 * character per byte, in two cases, because head and body then leave in one piece. Short ASCII is faster so, and a socket that ignores the
 * encoding reads it the same. And a response may wait behind another on its connection: the `100 Continue` of its own request would
 * otherwise come in between.
 */
function sendBody(res: ServerResponse, body: Uint8Array | string, outlet: Pick<OriginalMethods, 'end'>): void {
  if (typeof body === 'string') return void outlet.end.call(res, body, 'latin1')
  const { byteLength } = body
  if (byteLength === 0) return void outlet.end.call(res)
  const bytes = Buffer.isBuffer(body) ? body : toBuffer(body)
  const asText = hasNodeEnd(outlet) && (res.socket === null || (byteLength <= MAX_BYTES_AS_TEXT && isAscii(bytes)))
  if (asText) outlet.end.call(res, bytes.toString('latin1'), 'latin1')
  else outlet.end.call(res, bytes)
}

const NO_BYTES = Buffer.alloc(0)

/** How a handler begins its body. */
export interface BodyStart {
  /** `writeHead` handed the head over before. */
  readonly isExplicit: boolean
  readonly by: 'write' | 'end' | 'flushHeaders'
  readonly chunk: unknown
  readonly encoding: unknown
}

/**
 * The head as Node sends it before such a beginning, with all headers of the response. A head of ASCII is itself.
 *
 * How Node encodes a head's non-ASCII characters depends on how the body begins: before a string it uses the string's
 * encoding, otherwise Latin-1, and it re-encodes `Content-Disposition` if a length is known. The held answer and its
 * replay begin differently from the handler's response. So Node writes the head once to a response that goes nowhere,
 * and both are sent with one byte per character of the result.
 */
export function toWireHead(
  req: IncomingMessage,
  readHeaders: () => HeaderMap,
  head: ResponseHead,
  beginning: BodyStart,
): ResponseHead {
  if (head.isAscii) return head
  const [statusLine = '', ...fields] = parseHeadLines(encodeHeadAsNode(req, readHeaders(), head, beginning))
  const headers = head.headers.map(([name, value]) => {
    const at = fields.findIndex((field) => field.startsWith(`${name}: `))
    const [field] = at < 0 ? [] : fields.splice(at, 1)
    return [name, field?.slice(name.length + 2) ?? value] as const
  })
  // HTTP/1.1 201 Reason
  const statusMessage = head.statusMessage === '' ? '' : statusLine.slice(13) || head.statusMessage
  return { status: head.status, statusMessage, headers, isAscii: true, isAsOnWire: true }
}

/** Sets the response's headers. Content-Length comes last, because after it Node re-encodes `Content-Disposition`. */
export function setHeaders(res: ServerResponse, { headers }: Pick<ResponseHead, 'headers'>): void {
  for (const [name, value] of groupHeadersByName(headers))
    if (!isSameHeaderValue(res.getHeader(name), value)) res.setHeader(name, value)
  const length = res.getHeader('Content-Length')
  if (length === undefined) return
  res.removeHeader('Content-Length')
  res.setHeader('Content-Length', length)
}

function encodeHeadAsNode(
  req: IncomingMessage,
  all: HeaderMap,
  { status, statusMessage }: ResponseHead,
  { isExplicit, by, chunk, encoding }: BodyStart,
): Buffer {
  const pieces: Buffer[] = []
  const sink = new Writable({
    write(bytes, _encoding, done) {
      pieces.push(bytes)
      done()
    },
  })
  const asked = new ServerResponse(req)
  asked.sendDate = false
  for (const [name, value] of Object.values(all)) {
    asked.setHeader(name, Array.isArray(value) ? [...value] : value)
  }
  asked.assignSocket(sink as unknown as Socket)
  asked.statusCode = status
  if (statusMessage !== '') asked.statusMessage = statusMessage
  if (isExplicit) asked.writeHead(status)
  if (by === 'flushHeaders') asked.flushHeaders()
  else asked[by](chunk, encoding as BufferEncoding)
  if (by !== 'end') asked.end()
  return Buffer.concat(pieces)
}

function parseHeadLines(bytes: Buffer): string[] {
  return bytes.toString('latin1', 0, bytes.indexOf('\r\n\r\n')).split('\r\n')
}
