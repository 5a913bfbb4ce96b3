import { IncomingMessage, ServerResponse } from 'node:http'
import type { Socket } from 'node:net'
import { type Outlet, type Senders, sendersOf } from './outlet.js'

/*
 * Everything in which a held request and its response are not as Node made them. No other file writes to these.
 *
 * `res.writeHead`, `write`, `end`, `flushHeaders`
 *                        keep what the handler writes until its record is settled; of a stream, the end.
 * `res.destroy`          is a failure: its record is released before the connection closes. Once the handler has ended its
 *                        response, the client gets the answer first.
 * `res.emit`             withholds 'close': a handler goes on without its client, and its streams must find their end.
 * `res._header`          stands for a head that was handed over: `headersSent` is true, and setters throw.
 * `res._headerSent`      is true as long, or Node would take that for a head and send it.
 * `res.writableEnded`    is true once the handler has ended. Node's own `finished` stays false, since `server.close()` hangs up
 *                        on connections whose response it takes for sent.
 * `res.writableNeedDrain`   is false once a stream's client has left: nobody reads, and nobody has to.
 * `res._closed`          is false although the client has left; `res.destroyed` likewise, until the handler destroys it.
 * `res._last`            is true where the handler hung up behind its answer: Node ends the connection once the answer is out.
 * `res.socket`           is a view that outlives the client: who watches the socket would stop a stream when the client leaves.
 * `req.socket`           is a view, until the answer is out. Whoever hangs up by one of them means the response: final error
 *                        handlers do, and `req.destroy()`.
 * `res.__onFinished`     begins anew: on-finished keeps one list of watchers, which would watch the client's own socket.
 * `_maxListeners`        of both is deleted and set again where V8 needs that: see `roomy`.
 *
 * The functions are shared, and find their response by a symbol: closures of a request's own outlive many collections. The
 * prototype of `res` is not ours to change: Express sets it in each mounted application.
 */

/** What the functions turn to. */
export interface Holder {
  writeHead(status: number, reason: unknown, headers: unknown): void
  write(chunk: unknown, encoding: unknown, callback: unknown): boolean
  end(chunk: unknown, encoding: unknown, callback: unknown): void
  flushHeaders(): void
  destroy(error: Error | undefined): void
  emit(event: string | symbol, args: unknown[]): boolean
}

/** Puts the functions on a response. Who watches it from now on hears the view of its socket; who did before, the socket. */
export function hold(res: ServerResponse, holder: Holder): void {
  const held = res as unknown as Record<string | symbol, unknown>
  held[HOLDER] = holder
  held.writeHead = writeHead
  held.write = write
  held.end = end
  held.flushHeaders = flushHeaders
  held.destroy = destroy
  held.emit = emit
  held.__onFinished = null
}

/** Puts back what the middleware replaced: an error page is to follow, in place of the response that had ended. */
export function giveBack(res: ServerResponse, outlet: Outlet): void {
  const { destroy, emit } = outlet
  Object.assign(res, { ...sendersOf(outlet), destroy, emit })
  notEnded(res)
}

/** Gives the response these functions; returns those that it had. */
export function replaceSenders(res: ServerResponse, senders: Senders): Senders {
  const before = sendersOf(res as unknown as Senders)
  Object.assign(res, sendersOf(senders))
  return before
}

// --- the fields

/** The head was handed over. */
export function begun(res: ServerResponse): void {
  const fields = fieldsOf(res)
  fields._header = 'HTTP/1.1 held'
  fields._headerSent = true
}

/** Nothing has left yet: Node may write the head. */
export function notBegun(res: ServerResponse): void {
  const fields = fieldsOf(res)
  fields._header = null
  fields._headerSent = false
}

export function ended(res: ServerResponse): void {
  Object.defineProperty(res, 'writableEnded', YES)
}

/** The handler's end does not count. */
export function notEnded(res: ServerResponse): void {
  Reflect.deleteProperty(res, 'writableEnded')
}

export function needsNoDrain(res: ServerResponse): void {
  Object.defineProperty(res, 'writableNeedDrain', NO)
}

const YES = { value: true, configurable: true }
const NO = { value: false, configurable: true }

export function destroyed(res: ServerResponse, isDestroyed: boolean): void {
  fieldsOf(res).destroyed = isDestroyed
}

/** Node ends the connection once this response is out. */
export function lastOnConnection(res: ServerResponse): void {
  fieldsOf(res)._last = true
}

export function closed(res: ServerResponse, isClosed: boolean): void {
  const fields = fieldsOf(res)
  fields._closed = isClosed
  fields.destroyed = isClosed
}

export function isClosed(res: ServerResponse): boolean {
  return fieldsOf(res)._closed
}

export function socketOfResponse(res: ServerResponse, shown: Socket | null): void {
  fieldsOf(res).socket = shown
}

export function socketOfRequest(req: IncomingMessage, shown: Socket): void {
  req.socket = shown
}

/** Node's own `end` has run. */
export function nodesEndHasRun(res: ServerResponse): boolean {
  return fieldsOf(res).finished
}

export function hasTrailers(res: ServerResponse): boolean {
  return fieldsOf(res)._trailer !== ''
}

/** By which Node, and most middleware, tell whether a response has begun, ended or closed. */
interface Fields {
  /** Truthy: the head is out. */
  _header: string | null
  /** The head was written to the socket. */
  _headerSent: boolean
  _closed: boolean
  _last: boolean
  destroyed: boolean
  socket: Socket | null
  finished: boolean
  /** Those that were added, as text. */
  _trailer: string
}

function fieldsOf(res: ServerResponse): Fields {
  return res as unknown as Fields
}

// --- the functions

const HOLDER = Symbol('once-per-key: the held response')

interface Held {
  readonly [HOLDER]: Holder
}

function writeHead(this: Held, status: number, reason?: unknown, headers?: unknown): Held {
  this[HOLDER].writeHead(status, reason, headers)
  return this
}

function write(this: Held, chunk: unknown, encoding?: unknown, callback?: unknown): boolean {
  return this[HOLDER].write(chunk, encoding, callback)
}

function end(this: Held, chunk?: unknown, encoding?: unknown, callback?: unknown): Held {
  this[HOLDER].end(chunk, encoding, callback)
  return this
}

function flushHeaders(this: Held): void {
  this[HOLDER].flushHeaders()
}

function destroy(this: Held, error?: Error): Held {
  this[HOLDER].destroy(error)
  return this
}

function emit(this: Held, event: string | symbol, ...args: unknown[]): boolean {
  return this[HOLDER].emit(event, args)
}

/**
 * Makes room for properties. Express changes the prototype of each request and each response, and V8 before 13 (Node 24) shares
 * no hidden class between objects that had theirs changed: every property that is added from then on, be it Node's
 * `statusMessage`, costs one of some 1.5 kB that outlives the request. An object of which a property was deleted is a
 * dictionary, to which properties are added at no such cost; the property is one that every emitter has. Without Express
 * nothing is done.
 */
export function roomy(message: IncomingMessage | ServerResponse): void {
  if (SHARES_HIDDEN_CLASSES) return
  const prototype = Object.getPrototypeOf(message)
  if (prototype === ServerResponse.prototype || prototype === IncomingMessage.prototype) return
  const emitter = message as { _maxListeners?: number | undefined }
  const { _maxListeners } = emitter
  // Not `delete`, which throws where it may not.
  if (Reflect.deleteProperty(emitter, '_maxListeners')) emitter._maxListeners = _maxListeners
}

const SHARES_HIDDEN_CLASSES = Number.parseInt(process.versions.v8, 10) >= 13
