import { IncomingMessage, ServerResponse } from 'node:http'
import type { Socket } from 'node:net'

/**
 * Fields by which Node, and most middleware, tell whether a response has begun, ended or closed. This file alone writes
 * them. `finished` stays false while an ended response is held: `server.close()` hangs up on connections whose response
 * it takes for sent.
 */
interface Internals {
  /** Truthy: the head is out, so `headersSent` is true and setters throw. */
  _header: string | null
  _closed: boolean
  destroyed: boolean
  socket: Socket | null
  finished: boolean
  /** Those that were added, as text. */
  _trailer: string
  /** on-finished's list of those who wait for the response's end. */
  __onFinished?: unknown
}

function internalsOf(res: ServerResponse): Internals {
  return res as unknown as Internals
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

export function begun(res: ServerResponse): void {
  internalsOf(res)._header = 'HTTP/1.1 held'
}

export function ended(res: ServerResponse): void {
  Object.defineProperty(res, 'writableEnded', ENDED)
}

export function destroyed(res: ServerResponse): void {
  internalsOf(res).destroyed = true
}

const ENDED = { value: true, configurable: true }

/** Nothing has left yet: Node may write the head. */
export function nothing(res: ServerResponse): void {
  const internals = internalsOf(res)
  internals._header = null
  internals.destroyed = false
}

/** An error page is to follow in place of the response that had ended. */
export function notEnded(res: ServerResponse): void {
  Reflect.deleteProperty(res, 'writableEnded')
}

export function closed(res: ServerResponse, isClosed: boolean): void {
  const internals = internalsOf(res)
  internals._closed = isClosed
  internals.destroyed = isClosed
}

export function isClosed(res: ServerResponse): boolean {
  return internalsOf(res)._closed
}

export function socket(res: ServerResponse, shown: Socket | null): void {
  internalsOf(res).socket = shown
}

export function nodesEndHasRun(res: ServerResponse): boolean {
  return internalsOf(res).finished
}

export function hasTrailers(res: ServerResponse): boolean {
  return internalsOf(res)._trailer !== ''
}

/** Who watches the response from now on hears the view of its socket; who watched it before, the client's socket. */
export function unwatched(res: ServerResponse): void {
  internalsOf(res).__onFinished = null
}
