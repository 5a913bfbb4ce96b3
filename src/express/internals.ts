import type { ServerResponse } from 'node:http'
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
  /** on-finished's list of those who wait for the response's end. */
  __onFinished?: unknown
}

function internalsOf(res: ServerResponse): Internals {
  return res as unknown as Internals
}

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

/** Who watches the response from now on hears the view of its socket; who watched it before, the client's socket. */
export function unwatched(res: ServerResponse): void {
  internalsOf(res).__onFinished = null
}
