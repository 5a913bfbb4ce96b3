import { type IncomingMessage, ServerResponse } from 'node:http'
import type { Socket } from 'node:net'
import { type OriginalMethods, pickSendingMethods, type SendingMethods } from './sending/outlet.js'

/*
 * Everything in which a held request and its response differ from what Node made. No other file writes to these.
 *
 * `res.writeHead`, `write`, `end`, `flushHeaders`
 *                        keep what the handler writes until its record is settled; of a stream, only the end.
 *                        Once an event stream's client has left, an `end` of middleware behind calls this one too.
 * `res._send`            keeps what Node's own `write` and `end` would send before the record is settled: a firewall in the process
 *                        may call them directly.
 * `res.destroy`          is a failure: the record is released before the connection closes. After the handler has ended
 *                        its response, the client gets the answer first.
 * `res.emit`             withholds 'close': a handler continues without its client, and its streams must be able to end. The
 *                        'prefinish' and 'finish' of such an `end` of Node's own are not the response's.
 * `res._header`          represents a head that was handed over: `headersSent` is true, and setters throw.
 * `res._headerSent`      is true meanwhile; otherwise Node would take `_header` for a head and send it.
 * `res.writableEnded`    is true once the handler has ended. Node's own `finished` stays false, because `server.close()`
 *                        closes connections whose response it considers sent.
 * `res.writableNeedDrain`   is false after a stream's client has left: nobody reads, so writers must not wait.
 * `res._closed`          is false although the client has left; so is `res.destroyed`, until the handler destroys it.
 * `res._last`            is true if the handler hung up after its answer: Node closes the connection after sending it.
 * `res.socket`           is a view that outlives the client: code that watches the socket would stop a stream when the
 *                        client leaves.
 * `req.socket`           is a view until the answer is out. Hanging up by it counts as destroying the response: final
 *                        error handlers and `req.destroy()` do so.
 * `req.destroy`          sees the view that is closed when the client has left, where a framework sees one that outlives it: Node
 *                        would take that for open, and close it.
 * `res.setHeader`, `appendHeader`, `removeHeader`, `setHeaders`
 *                        do nothing once a failure has ended the response: a time limit may have answered while the handler still
 *                        runs, and what the handler answers later is ignored, as its `end` is.
 * `res._isLenientHeaderValidation`   returns what Node's own returned before, which reads the server's options through `req.socket`.
 * `res.__onFinished`     is reset: on-finished keeps one list of watchers, which would watch the client's own socket.
 * `_maxListeners`        of both is deleted and set again on Express if V8 needs that: src/express/middleware.ts.
 *
 * The functions are shared, and find their response by a symbol: closures of each request would survive many garbage
 * collections. The prototype of `res` must not be changed: Express sets it in each mounted application.
 */

/**
 * - `holding`: what the handler writes is kept. Next: `streaming`, `given`, `ended` or `broken`.
 * - `given`: the framework has handed the answer to the run, and writes it once its record is settled. What anybody writes
 *   meanwhile is discarded. Next: `holding`.
 * - `streaming`: the answer is too large to keep, or has no end to wait for. Its head was sent, and what the handler
 *   writes is sent as it comes, except the end. Next: `ended` or `broken`.
 * - `ended`: the handler has ended its response; nothing that it does later changes the answer. Its record is being
 *   settled, or the result is being sent. Next: `finished`; or `holding` again, if the answer was made in a transaction
 *   that was rolled back.
 * - `finished`: the last byte was sent, or the client has gone.
 * - `broken`: the handler broke its response off before its end: a failure. The connection is closed afterwards.
 */
export type BufferState = 'holding' | 'given' | 'streaming' | 'ended' | 'finished' | 'broken'

export interface ResponseOverrides {
  /** What Node's own functions send is on its way to the client. */
  readonly isSending: boolean
  writeHead(status: number, reason: unknown, headers: unknown): void
  write(chunk: unknown, encoding: unknown, callback: unknown): boolean
  end(chunk: unknown, encoding: unknown, callback: unknown): void
  flushHeaders(): void
  destroy(error: Error | undefined): void
  emit(event: string | symbol, args: unknown[]): boolean
  hideDisconnect(): void
}

/** Installs the functions on a response. Later watchers of `socket` see the view, earlier ones the real socket. */
export function overrideResponse(res: ServerResponse, holder: ResponseOverrides): void {
  const held = res as unknown as Record<string | symbol, unknown>
  held[HOLDER] = holder
  held.writeHead = writeHead
  held.write = write
  held.end = end
  held.flushHeaders = flushHeaders
  held._send = send
  held.destroy = destroy
  held.emit = emit
  if (held.__onFinished !== undefined) held.__onFinished = null
}

/**
 * From 24.22 to 25, Node asks for this at each header, twice, and reads the server's options through the request's socket. From 26 on it asks
 * once for each message. Called before that socket is a view, because a view makes each question slow.
 */
export function rememberHeaderValidation(res: ServerResponse): void {
  const held = res as unknown as { _isLenientHeaderValidation?: () => boolean }
  const isLenient = held._isLenientHeaderValidation?.()
  if (isLenient !== undefined) held._isLenientHeaderValidation = isLenient ? returnTrue : returnFalse
}

const returnTrue = (): boolean => true
const returnFalse = (): boolean => false

/** Whether nobody has wrapped what `overrideResponse` installed: then nothing waits behind it for the head or the body. */
export function areMethodsOurs(res: ServerResponse): boolean {
  const held = res as unknown as Record<string, unknown>
  return held.end === end && held.writeHead === writeHead && held.write === write && held.flushHeaders === flushHeaders
}

/** Whether it has passed the library already. */
export function isBuffered(res: ServerResponse): boolean {
  return (res as Partial<OverriddenResponse>)[HOLDER] !== undefined
}

/** Called by a framework that watches `req.socket` for its handlers: it must not see that the client of a held response has left. */
export function hideDisconnect(res: ServerResponse): void {
  ;(res as Partial<OverriddenResponse>)[HOLDER]?.hideDisconnect()
}

export function overrideRequestDestroy(req: IncomingMessage, client: RequestDestroyer): void {
  const held = req as unknown as Record<string | symbol, unknown>
  held[CLIENT] = client
  held.destroy = destroyRequest
}

/** Restores what the middleware replaced, so that an error page can replace the response that the handler had ended. */
export function restoreResponse(res: ServerResponse, outlet: OriginalMethods): void {
  const { destroy, emit } = outlet
  Object.assign(res, { ...pickSendingMethods(outlet), destroy, emit })
  showAsNotEnded(res)
}

/**
 * From now on an `end` arrives also through middleware behind: compression destroys its stream when the client leaves, after which no end
 * comes out of it.
 */
export function forwardWrappedEnd(res: ServerResponse): void {
  const held = res as unknown as OverriddenResponse & { end: typeof end }
  const wrapper = held.end
  if (wrapper === end) return
  held.end = function (this: OverriddenResponse, ...args) {
    wrapper.apply(this, args)
    if (!res.writableEnded) this[HOLDER].end(undefined, undefined, undefined)
    return this
  }
}

/** Installs these functions on the response; returns the previous ones. */
export function replaceSendingMethods(res: ServerResponse, senders: SendingMethods): SendingMethods {
  const before = pickSendingMethods(res as unknown as SendingMethods)
  Object.assign(res, pickSendingMethods(senders))
  return before
}

// --- the fields

export function showAsBegun(res: ServerResponse): void {
  const fields = getResponseFields(res)
  fields._header = 'HTTP/1.1 held'
  fields._headerSent = true
}

/** Nothing has been sent yet: Node may write the head. */
export function showAsNotBegun(res: ServerResponse): void {
  const fields = getResponseFields(res)
  fields._header = null
  fields._headerSent = false
}

export function showAsEnded(res: ServerResponse): void {
  Object.defineProperty(res, 'writableEnded', YES)
  ignoreHeaders(res)
}

export function showAsNotEnded(res: ServerResponse): void {
  Reflect.deleteProperty(res, 'writableEnded')
  acceptHeaders(res)
}

/** Of a failure that has ended the response; whoever ends a success twice has made a mistake, and learns of it. */
export function ignoreHeaders(res: ServerResponse): void {
  if (res.statusCode < 400 || isIgnoringHeaders(res)) return
  const held = res as unknown as HeaderSetters
  held[SETTERS_BEFORE] = SETTERS.map((name) => Object.getOwnPropertyDescriptor(res, name))
  for (const name of SETTERS) held[name] = ignore
}

export function isIgnoringHeaders(res: ServerResponse): boolean {
  return (res as unknown as HeaderSetters)[SETTERS_BEFORE] !== undefined
}

/** What is sent is not the handler's. */
export function acceptHeaders(res: ServerResponse): void {
  const held = res as unknown as HeaderSetters
  const before = held[SETTERS_BEFORE]
  if (before === undefined) return
  held[SETTERS_BEFORE] = undefined
  for (const [i, name] of SETTERS.entries()) {
    Reflect.deleteProperty(res, name)
    const own = before[i]
    if (own !== undefined) Object.defineProperty(res, name, own)
  }
}

const SETTERS = ['setHeader', 'appendHeader', 'removeHeader', 'setHeaders'] as const
const SETTERS_BEFORE = Symbol('once-per-key: the setters of headers')

type HeaderSetters = Record<(typeof SETTERS)[number], typeof ignore> & {
  [SETTERS_BEFORE]?: readonly (PropertyDescriptor | undefined)[] | undefined
}

function ignore<This>(this: This): This {
  return this
}

export function clearNeedDrain(res: ServerResponse): void {
  Object.defineProperty(res, 'writableNeedDrain', NO)
}

const YES = { value: true, configurable: true }
const NO = { value: false, configurable: true }

export function showAsDestroyed(res: ServerResponse, isDestroyed: boolean): void {
  getResponseFields(res).destroyed = isDestroyed
}

export function closeAfterResponse(res: ServerResponse): void {
  getResponseFields(res)._last = true
}

export function showAsClosed(res: ServerResponse, isClosed: boolean): void {
  const fields = getResponseFields(res)
  fields._closed = isClosed
  fields.destroyed = isClosed
}

export function isClosed(res: ServerResponse): boolean {
  return getResponseFields(res)._closed
}

export function showResponseSocket(res: ServerResponse, shown: Socket | null): void {
  getResponseFields(res).socket = shown
}

export function showRequestSocket(req: IncomingMessage, shown: Socket): void {
  req.socket = shown
}

export function hasNodeEndRun(res: ServerResponse): boolean {
  return getResponseFields(res).finished
}

/** What a response shows from now on. What it shows once it has `ended` depends on what was sent. */
export function showBufferState(res: ServerResponse, state: BufferState): void {
  if (state === 'holding') showAsNotEnded(res)
  else if (state === 'given') showAsEnded(res)
  else if (state === 'broken') showAsDestroyed(res, true)
}

/** It has run in place of the hold's: the response goes on. */
export function resetNodeEnd(res: ServerResponse): void {
  getResponseFields(res).finished = false
}

/** Whether Node, given the whole body, tells its length: not to HTTP/1.0, and not beside trailers or where the header was removed. */
export function announcesLength(res: ServerResponse): boolean {
  const { useChunkedEncodingByDefault, _removedContLen } = getResponseFields(res)
  return useChunkedEncodingByDefault && !_removedContLen && !hasTrailers(res)
}

export function hasTrailers(res: ServerResponse): boolean {
  return getResponseFields(res)._trailer !== ''
}

/** The fields by which Node, and most middleware, tell whether a response has begun, ended or closed. */
interface ResponseFields {
  /** Truthy: the head was written. */
  _header: string | null
  /** The head was written to the socket. */
  _headerSent: boolean
  _closed: boolean
  _last: boolean
  destroyed: boolean
  socket: Socket | null
  finished: boolean
  /** The added trailers, as text. */
  _trailer: string
  /** HTTP/1.1. */
  useChunkedEncodingByDefault: boolean
  _removedContLen: boolean
}

function getResponseFields(res: ServerResponse): ResponseFields {
  return res as unknown as ResponseFields
}

// --- the functions

const CLIENT = Symbol('once-per-key: the client of the request')

interface RequestDestroyer {
  destroyRequest(error: Error | undefined): void
}

interface OverriddenRequest {
  readonly [CLIENT]: RequestDestroyer
}

function destroyRequest(this: OverriddenRequest, error?: Error): OverriddenRequest {
  this[CLIENT].destroyRequest(error)
  return this
}

const HOLDER = Symbol('once-per-key: the held response')

interface OverriddenResponse {
  readonly [HOLDER]: ResponseOverrides
}

function writeHead(this: OverriddenResponse, status: number, reason?: unknown, headers?: unknown): OverriddenResponse {
  this[HOLDER].writeHead(status, reason, headers)
  return this
}

function write(this: OverriddenResponse, chunk: unknown, encoding?: unknown, callback?: unknown): boolean {
  return this[HOLDER].write(chunk, encoding, callback)
}

function end(this: OverriddenResponse, chunk?: unknown, encoding?: unknown, callback?: unknown): OverriddenResponse {
  this[HOLDER].end(chunk, encoding, callback)
  return this
}

function flushHeaders(this: OverriddenResponse): void {
  this[HOLDER].flushHeaders()
}

function send(
  this: OverriddenResponse,
  data: unknown,
  encoding?: unknown,
  callback?: unknown,
  byteLength?: unknown,
): boolean {
  const holder = this[HOLDER]
  if (!holder.isSending) return holder.write(data, encoding, callback)
  return NODES_SEND.call(this, data, encoding, callback, byteLength)
}

const { _send: NODES_SEND } = ServerResponse.prototype as unknown as { readonly _send: typeof send }

function destroy(this: OverriddenResponse, error?: Error): OverriddenResponse {
  this[HOLDER].destroy(error)
  return this
}

function emit(this: OverriddenResponse, event: string | symbol, ...args: unknown[]): boolean {
  return this[HOLDER].emit(event, args)
}
