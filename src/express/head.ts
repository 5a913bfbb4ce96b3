import type { IncomingMessage, OutgoingHttpHeader, OutgoingHttpHeaders, ServerResponse } from 'node:http'
import { type HeaderPairs, IdempotencyError } from '../core/index.js'
import { invalidStatus, invalidStatusMessage } from './node-errors.js'
import { isEndNodes, type Outlet } from './outlet.js'

/** What a handler handed over with its first byte, or by `writeHead`. */
export interface Head {
  readonly status: number
  readonly statusMessage: string
  /** Those that were set or changed since the middleware. */
  readonly headers: HeaderPairs
}

/** The headers of a response at one moment, by their names in lower case; each with its name as it was written. */
export type HeaderSnapshot = ReadonlyMap<string, readonly [name: string, value: OutgoingHttpHeader]>

/** What `writeHead` takes besides the status: an object, a flat array, or pairs. */
export type HeadArgument =
  | OutgoingHttpHeaders
  | readonly OutgoingHttpHeader[]
  | readonly (readonly [string, OutgoingHttpHeader])[]

/** RFC 9110 §6.4.1: no content after HEAD, and none with 1xx, 204 and 304. */
export function mayHaveBody(req: IncomingMessage, status: number): boolean {
  return req.method !== 'HEAD' && status !== 204 && status !== 304 && status >= 200
}

/** Does to `res` what Node's `writeHead` would, short of writing, and reads the result. Throws what it would throw. */
export function takeHead(
  req: IncomingMessage,
  res: ServerResponse,
  before: HeaderSnapshot,
  status: number,
  reason: string | HeadArgument | undefined,
  headers: HeadArgument | undefined,
  outlet: Outlet,
): Head {
  if (!(status >= 100 && status <= 999)) throw invalidStatus(status)
  if (typeof reason === 'string') res.statusMessage = reason
  const statusMessage = `${res.statusMessage || ''}` // Node takes whatever makes a string.
  if (/[^\t\x20-\x7e\x80-\xff]/.test(statusMessage)) throw invalidStatusMessage()
  const given = typeof reason === 'string' ? headers : (headers ?? reason)
  if (given !== undefined && given !== null) setHeadArgument(res, given)
  res.statusCode = Math.trunc(status)
  // Else it is made anew.
  const keepLength = !mayHaveBody(req, res.statusCode) || !isEndNodes(outlet)
  return { status: res.statusCode, statusMessage, headers: changedSince(before, res, keepLength) }
}

/** A handler that announced more bytes than it wrote was itself cut off, such as by its own upstream. */
export function isCutShort(req: IncomingMessage, res: ServerResponse, body: Uint8Array): boolean {
  return Number(res.getHeader('Content-Length')) > body.byteLength && mayHaveBody(req, res.statusCode)
}

export function snapshotOf(res: ServerResponse): HeaderSnapshot {
  const snapshot = new Map<string, readonly [name: string, value: OutgoingHttpHeader]>()
  for (const name of rawNamesOf(res)) {
    const value = res.getHeader(name) as OutgoingHttpHeader
    snapshot.set(name.toLowerCase(), [name, Array.isArray(value) ? [...value] : value]) // appendHeader adds in place.
  }
  return snapshot
}

/** Headers that were set or changed since a snapshot: whole values, a line each. */
function changedSince(before: HeaderSnapshot, res: ServerResponse, keepLength: boolean): HeaderPairs {
  const changed: [string, string][] = []
  for (const name of rawNamesOf(res)) {
    const lowerCaseName = name.toLowerCase()
    const value = res.getHeader(name) as OutgoingHttpHeader
    if ((lowerCaseName === 'content-length' && !keepLength) || isSame(before.get(lowerCaseName)?.[1], value)) continue
    if (Array.isArray(value)) for (const line of value) changed.push([name, String(line)])
    else changed.push([name, String(value)])
  }
  return changed
}

/** Takes back all that changed since a snapshot. */
export function restore(before: HeaderSnapshot, res: ServerResponse): void {
  const { sendDate } = res
  for (const name of res.getHeaderNames()) res.removeHeader(name)
  res.sendDate = sendDate // To remove a date means to send none.
  for (const [name, value] of before.values()) res.setHeader(name, value)
  res.statusMessage = ''
}

/** Sets the headers that were given to `writeHead`: they replace those of the same name, and may repeat a name. */
function setHeadArgument(res: ServerResponse, given: HeadArgument): void {
  if (!Array.isArray(given)) {
    for (const [name, value] of Object.entries(given as OutgoingHttpHeaders)) {
      if (value !== undefined) res.setHeader(name, value)
    }
    return
  }
  const pairs = Array.isArray(given[0]) ? given : pairsOf(given)
  for (const [name] of pairs) res.removeHeader(name)
  for (const [name, value] of pairs) res.appendHeader(name, typeof value === 'number' ? String(value) : value)
}

function pairsOf(flat: readonly OutgoingHttpHeader[]): [string, OutgoingHttpHeader][] {
  const pairs: [string, OutgoingHttpHeader][] = []
  for (let i = 0; i < flat.length; i += 2) pairs.push([String(flat[i]), flat[i + 1] as OutgoingHttpHeader])
  return pairs
}

function isSame(a: OutgoingHttpHeader | undefined, b: OutgoingHttpHeader): boolean {
  if (!Array.isArray(a) || !Array.isArray(b)) return a === b
  return a.length === b.length && a.every((line, i) => line === b[i])
}

/** `@types/node` knows it on client requests only; every outgoing message has had it since Node 15.4. */
function rawNamesOf(res: ServerResponse): string[] {
  const response = res as ServerResponse & { getRawHeaderNames?(): string[] }
  if (response.getRawHeaderNames === undefined) throw responseUnsupported()
  return response.getRawHeaderNames()
}

function responseUnsupported(): IdempotencyError {
  return new IdempotencyError(
    'response_unsupported',
    'The response is not one of node:http or node:https, such as one of HTTP/2 or a mock, so it cannot be held until it is ' +
      'stored. Serve HTTP/1.1, with HTTP/2 at the proxy.',
  )
}
