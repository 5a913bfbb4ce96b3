import { type IncomingMessage, type OutgoingHttpHeader, ServerResponse } from 'node:http'
import { IdempotencyError, transactionStreamedError } from '../core/index.js'
import * as faked from './faked.js'
import type { Callback } from './node-errors.js'

/** A response's current headers: from the name in lower case to the name as written and the value. */
export type HeaderMap = Readonly<Record<string, readonly [name: string, value: OutgoingHttpHeader]>>

/**
 * Node's own map, if the response has one. Node's methods validate each name, or copy everything, which would be the
 * most expensive part of handling a head.
 */
export function getHeaderMap(res: ServerResponse): HeaderMap {
  if (NODES_HEADERS !== undefined) {
    const headers = (res as unknown as Record<symbol, HeaderMap | null | undefined>)[NODES_HEADERS]
    if (headers !== undefined) return headers ?? NONE
  }
  const headers: Record<string, readonly [string, OutgoingHttpHeader]> = Object.create(null)
  for (const name of listRawHeaderNames(res))
    headers[name.toLowerCase()] = [name, res.getHeader(name) as OutgoingHttpHeader]
  return headers
}

/** Looks the header up by its name in lower case. */
export function getHeaderValue(res: ServerResponse, name: string): OutgoingHttpHeader | undefined {
  return getHeaderMap(res)[name]?.[1]
}

const NONE: HeaderMap = Object.freeze(Object.create(null))
const NODES_HEADERS = Object.getOwnPropertySymbols(new ServerResponse({} as IncomingMessage)).find(
  ({ description }) => description === 'kOutHeaders',
)

export function snapshotHeaders(res: ServerResponse): HeaderMap {
  const headers = getHeaderMap(res)
  const snapshot: Record<string, HeaderMap[string]> = Object.create(null)
  for (const lowerCaseName in headers) {
    const [name, value] = headers[lowerCaseName] as HeaderMap[string]
    snapshot[lowerCaseName] = [name, Array.isArray(value) ? [...value] : value] // Copies, because appendHeader changes both arrays.
  }
  return snapshot
}

/** Undoes all changes after a snapshot. */
export function restoreHeaders(before: HeaderMap, res: ServerResponse): void {
  const { sendDate } = res
  for (const name of res.getHeaderNames()) res.removeHeader(name)
  res.sendDate = sendDate // Removing `Date` would also switch it off.
  for (const [name, value] of Object.values(before)) res.setHeader(name, value)
  res.statusMessage = ''
}

/** The head of a response as it was at one moment. */
export class HeadSnapshot {
  readonly #res: ServerResponse
  readonly #headers: HeaderMap
  readonly #status: number
  readonly #statusMessage: string

  constructor(res: ServerResponse) {
    this.#res = res
    this.#headers = snapshotHeaders(res)
    this.#status = res.statusCode
    this.#statusMessage = res.statusMessage
  }

  /** Undoes all changes since. */
  restore(): void {
    const res = this.#res
    restoreHeaders(this.#headers, res)
    res.statusCode = this.#status
    res.statusMessage = this.#statusMessage
  }
}

export function isSameHeaderValue(a: OutgoingHttpHeader | undefined, b: OutgoingHttpHeader): boolean {
  if (!Array.isArray(a) || !Array.isArray(b)) return a === b
  return a.length === b.length && a.every((line, i) => line === b[i])
}

/** HTTP/2 responses can be sent, but not held: they have neither raw names nor a reason phrase. A test double has not what Node made. */
export function isHttp1(res: ServerResponse): boolean {
  return 'getRawHeaderNames' in res && (NODES_HEADERS === undefined || NODES_HEADERS in res)
}

/** In `@types/node` only for client requests; HTTP/2 responses lack it. */
function listRawHeaderNames(res: ServerResponse): string[] {
  const response = res as ServerResponse & { getRawHeaderNames?(): string[] }
  return response.getRawHeaderNames?.() ?? res.getHeaderNames()
}

/** @throws IdempotencyError `response_unsupported` */
export function assertHttp1Response(res: ServerResponse): void {
  if (!isHttp1(res)) throw responseUnsupportedError()
}

function responseUnsupportedError(): IdempotencyError {
  return new IdempotencyError(
    'response_unsupported',
    'The response is not from node:http or node:https (for example, from HTTP/2 or a test double), so it cannot be held until it is ' +
      'stored. Serve HTTP/1.1, and terminate HTTP/2 at the proxy. In a test, send the request to a server, as supertest does.',
  )
}

/** What is called of a response that is sent. */
const CALLED = ['getHeader', 'getHeaderNames', 'hasHeader', 'removeHeader', 'setHeader', 'writeHead', 'end'] as const

/** @throws IdempotencyError `response_unsupported` */
export function assertSendableResponse(res: ServerResponse): void {
  if (!CALLED.every((name) => typeof res[name] === 'function')) throw responseUnsupportedError()
}

/** The state of a response when the handler's transaction was opened: what is written afterwards may be discarded. */
export class ResponseCheckpoint {
  /** More was written than can be kept, or it must be sent before its end. Those bytes are dropped. */
  isStreamed = false
  readonly #res: ServerResponse
  readonly #head: HeadSnapshot

  constructor(res: ServerResponse) {
    this.#res = res
    this.#head = new HeadSnapshot(res)
  }

  restore(): void {
    this.isStreamed = false
    faked.showAsNotBegun(this.#res)
    this.#head.restore()
  }

  /** Nothing may be sent before the COMMIT: the transaction will be refused. */
  discardStreamedWrite(done: Callback | undefined): boolean {
    this.isStreamed = true
    if (done !== undefined) process.nextTick(done)
    return true
  }

  /** @throws IdempotencyError `transaction_streamed` */
  assertNotStreamed(): void {
    if (this.isStreamed) throw transactionStreamedError()
  }
}
