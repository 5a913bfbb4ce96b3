import { Buffer, isAscii } from 'node:buffer'
import { type IncomingMessage, ServerResponse } from 'node:http'
import { headersByName } from '../core/answer.js'
import type { Answer, HeaderPairs } from '../core/index.js'
import { type Head, isCutShort, mayHaveBody, restore, snapshotOf } from './head.js'
import * as pretend from './internals.js'
import { isEndNodes, type Outlet, outletOf, sendersOf } from './outlet.js'

/** What an answer passes on its way to the client, and whether a handler may still write to the response. */
export interface WayOut {
  readonly outlet: Outlet
  readonly handlerGoesOn: boolean
}

/** Sends an answer that the handler did not make just now: a replay or a problem. */
export function sendAnswer(
  req: IncomingMessage,
  res: ServerResponse,
  answer: Answer,
  isReplay: boolean,
  extraHeaders: HeaderPairs = [],
  { outlet, handlerGoesOn }: WayOut = { outlet: outletOf(res), handlerGoesOn: false },
): void {
  const body = answer.body ?? NO_BYTES
  const before = snapshotOf(res)
  try {
    for (const [name, value] of headersByName(answer.headers)) res.setHeader(name, value)
    const isNodes = isEndNodes(outlet)
    if (mayHaveBody(req, answer.status) && (isNodes || !isReplay || res.hasHeader('Content-Length'))) {
      res.setHeader('Content-Length', body.byteLength)
    }
    withHead(res, answer, extraHeaders, outlet, { isNodes, handlerGoesOn }, () => sendBody(res, body, outlet))
  } catch (error) {
    // A hook on the head may throw. The application's error page must not find this answer's headers.
    if (!res.headersSent) restore(before, res)
    throw error
  }
}

/** Sends the response as its handler made it, in one piece. */
export function sendWhole(
  req: IncomingMessage,
  res: ServerResponse,
  head: Head,
  body: Uint8Array,
  extraHeaders: HeaderPairs,
  outlet: Outlet,
): void {
  const isNodes = isEndNodes(outlet)
  const hasTrailers = pretend.hasTrailers(res)
  // Where the head waits, Node's `end` would announce a length, which leaves no room for trailers; once one is removed, none.
  if (hasTrailers && !res.hasHeader('Content-Length')) res.removeHeader('Content-Length')
  // Trailers and a transfer encoding of the handler's own need chunks. A client must see that an answer is cut short.
  const isChunked = res.hasHeader('Trailer') || res.hasHeader('Transfer-Encoding') || hasTrailers
  const isCounted = isNodes || res.hasHeader('Content-Length')
  if (isCounted && mayHaveBody(req, head.status) && !isChunked && !isCutShort(req, res, body)) {
    res.setHeader('Content-Length', body.byteLength)
  }
  withHead(res, head, extraHeaders, outlet, { isNodes }, () => sendBody(res, body, outlet))
}

/**
 * Sends the head, and the first piece of a body that goes on. Whether more may follow at once, rather than at Node's own
 * 'drain'.
 */
export function sendOpening(
  res: ServerResponse,
  head: Head,
  body: Uint8Array,
  extraHeaders: HeaderPairs,
  outlet: Outlet,
): boolean {
  if (body.byteLength === 0) {
    withHead(res, head, extraHeaders, outlet, { isNodes: true }, () => outlet.flushHeaders.call(res))
    return true
  }
  const isNodes = outlet.write === NODES_WRITE
  const flows = withHead(res, head, extraHeaders, outlet, { isNodes }, () => outlet.write.call(res, body)) !== false
  outlet.flush?.call(res) // The handler's own flush came while there was nothing to flush.
  return flows
}

/**
 * Sets headers on `res`, sends an explicit head, so that the hooks of earlier middleware run on it, and then what follows it.
 *
 * Where `end` or `write` is not Node's own, whoever wrapped it may set headers in it, write, ask for the head, or end later, as
 * where a handler calls it. So the head waits until it does, and until Node's own `end` has run the response has the functions
 * that it knew; but only for the time of the call where the handler goes on, whose writes must go nowhere.
 */
function withHead<Result>(
  res: ServerResponse,
  { status, statusMessage }: Pick<Head, 'status' | 'statusMessage'>,
  extraHeaders: HeaderPairs,
  outlet: Outlet,
  { isNodes, handlerGoesOn = false }: { readonly isNodes: boolean; readonly handlerGoesOn?: boolean },
  sendRest: () => Result,
): Result {
  for (const [name, value] of extraHeaders) {
    // A handler's own links stand beside the deprecation's; whatever else is set here belongs to this request alone.
    if (name === 'Link') res.appendHeader(name, value)
    else res.setHeader(name, value)
  }
  // Hooks on the head (on-headers) take the status from here; and another message may have been left, or set since.
  res.statusCode = status
  res.statusMessage = statusMessage
  if (isNodes) {
    sendHead()
    return sendRest()
  }
  const held = sendersOf(res as unknown as Outlet)
  const holdAgain = () => Object.assign(res, held)
  Object.assign(res, sendersOf(outlet))
  const result = sendRest()
  if (handlerGoesOn && !res.headersSent) sendHead()
  if (handlerGoesOn || pretend.nodesEndHasRun(res)) holdAgain()
  else res.once('finish', holdAgain)
  return result

  function sendHead(): void {
    if (statusMessage === '') outlet.writeHead.call(res, status)
    else outlet.writeHead.call(res, status, statusMessage)
  }
}

/**
 * As bytes: `end(string)` would write the head in the string's encoding, and mangle what is not ASCII in it; and a wrapped
 * `end` may know bytes alone, as Express sends them. Node's own `end` is given Latin-1 text, one byte a character, in two
 * cases, since head and body then leave in one piece: short ASCII, which saves time, and which a socket that ignores the
 * encoding reads the same; and a response that waits behind another on its connection, where the `100 Continue` of its own
 * request would come in between.
 */
function sendBody(
  res: ServerResponse,
  { buffer, byteOffset, byteLength }: Uint8Array,
  outlet: Pick<Outlet, 'end'>,
): void {
  if (byteLength === 0) return void outlet.end.call(res)
  const bytes = Buffer.from(buffer, byteOffset, byteLength)
  const asText = isEndNodes(outlet) && (res.socket === null || (byteLength <= MOST_BYTES_AS_TEXT && isAscii(bytes)))
  if (asText) outlet.end.call(res, bytes.toString('latin1'), 'latin1')
  else outlet.end.call(res, bytes)
}

/** A longer text is copied at a higher price than a second piece is sent. */
const MOST_BYTES_AS_TEXT = 16_384
const NODES_WRITE: unknown = ServerResponse.prototype.write
const NO_BYTES = Buffer.alloc(0)
