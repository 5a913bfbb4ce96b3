import { Buffer } from 'node:buffer'
import { validateHeaderName, validateHeaderValue } from 'node:http'
import { Readable } from 'node:stream'
import type { FastifyReply } from 'fastify'
import type { Answer } from '../core/index.js'
import { bodyHeaders, type HeaderPairs } from '../http/index.js'
import { createResponseHead, mayHaveBody, type ResponseHead } from '../node/head.js'
import { type HeaderMap, isSameHeaderValue, restoreHeaders, snapshotHeaders } from '../node/headers.js'
import { toWireHead } from '../node/sending/send.js'

/** A reply's own headers, in the form of those of Node's response. */
export function getReplyHeaders(reply: FastifyReply): HeaderMap {
  const headers: Record<string, HeaderMap[string]> = Object.create(null)
  for (const [name, value] of Object.entries(reply.getHeaders())) if (value !== undefined) headers[name] = [name, value]
  return headers
}

/** Status and headers of a reply at one moment. */
export class ReplyHead {
  readonly status: number
  readonly statusMessage: string
  readonly headers: HeaderMap
  readonly #reply: FastifyReply
  /** The headers that Node's response had. */
  readonly #raw: HeaderMap

  constructor(reply: FastifyReply) {
    this.#reply = reply
    this.status = reply.statusCode
    this.statusMessage = reply.raw.statusMessage ?? ''
    this.#raw = snapshotHeaders(reply.raw)
    this.headers = getReplyHeaders(reply)
  }

  /** If not, nothing of a payload is sent. */
  get mayHaveBody(): boolean {
    return mayHaveBody(this.#reply.request.raw, this.status)
  }

  get contentType(): string | null {
    return this.headers['content-type']?.[1].toString() ?? null
  }

  get length(): string | undefined {
    return this.headers['content-length']?.[1].toString()
  }

  /** What Node would throw for it; `null`: it can be sent. */
  findFault(): Error | null {
    try {
      validateHeaderValue('reason phrase', this.statusMessage)
      for (const [name, value] of Object.values(this.headers)) {
        validateHeaderName(name)
        for (const line of [value].flat()) validateHeaderValue(name, line as string)
      }
      return null
    } catch (error) {
      return error as Error
    }
  }

  /** Those that Fastify sends before such a payload: a 204 with one, even an empty one, has no content type. */
  getHeadersFor(payload: unknown): HeaderMap {
    if (this.status !== 204 || payload === undefined || payload === null) return this.headers
    const { 'content-type': _, ...others } = this.headers
    return others
  }

  /** With the headers that are to be stored, in the bytes that Node sends before such a payload. */
  toWireHead(headers: HeaderPairs, payload: unknown): ResponseHead {
    const chunk = this.mayHaveBody ? payload || undefined : undefined
    const head = createResponseHead(this.status, this.statusMessage, headers)
    const beginning = { isExplicit: true, by: 'end', chunk, encoding: undefined } as const
    return toWireHead(this.#reply.request.raw, () => this.#completeHeaders(payload), head, beginning)
  }

  /** As Fastify completes them. */
  #completeHeaders(payload: unknown): HeaderMap {
    if (this.status === 204 || this.status === 304) return this.headers
    const isSent = typeof payload === 'string' || Buffer.isBuffer(payload)
    return { ...this.headers, 'content-length': ['content-length', isSent ? Buffer.byteLength(payload) : 0] }
  }

  /** Undoes all changes since. */
  restore(): void {
    const reply = this.#reply
    const { raw } = reply
    for (const name of Object.keys(reply.getHeaders())) reply.removeHeader(name)
    restoreHeaders(this.#raw, raw)
    for (const [name, value] of Object.values(this.headers)) {
      if (!isSameHeaderValue(raw.getHeader(name), value)) reply.header(name, value)
    }
    reply.code(this.status)
    raw.statusMessage = this.statusMessage
  }
}

/** The content type of a stored answer, or none: Fastify would replace one that it cannot read, and add one. */
const TYPES = new WeakMap<FastifyReply, string | undefined>()

/** Sends an answer that the handler did not just make. */
export function sendEngineAnswer(reply: FastifyReply, answer: Answer, extraHeaders: HeaderPairs = []): FastifyReply {
  const { status, statusMessage, headers, body } = answer
  reply.code(status)
  if (statusMessage !== '') reply.raw.statusMessage = statusMessage
  const lines = new Map<string, string[]>()
  const add = (name: string, value: string) => lines.set(name, [...(lines.get(name) ?? []), value])
  for (const [name, value] of headers) add(name.toLowerCase(), value)
  for (const [name, value] of extraHeaders) {
    if (name !== 'Link') lines.delete(name.toLowerCase())
    add(name.toLowerCase(), value)
  }
  for (const name of bodyHeaders) reply.removeHeader(name) // Of earlier hooks, and perhaps of another body.
  for (const [name, values] of lines) reply.header(name, values.length === 1 ? values[0] : values)
  TYPES.set(reply, lines.get('content-type')?.[0])
  // A copy, because the bytes may be the store's own, and hooks may change them.
  if (body !== null && body.byteLength > 0) return reply.send(Buffer.from(body))
  // Without a body Fastify would tell a HEAD that its length is 0. Of a stream it tells nothing.
  return reply.send(reply.request.method === 'HEAD' ? Readable.from([]) : undefined)
}

/** An error page takes its place. */
export function unmarkStoredReply(reply: FastifyReply): void {
  if (TYPES.delete(reply)) reply.removeHeader('Idempotent-Replayed')
}

/** In `onSend`: such an answer has its own content type again. */
export function restoreContentType<Payload>(reply: FastifyReply, payload: Payload): Payload {
  if (!TYPES.has(reply)) return payload
  const type = TYPES.get(reply)
  if (type === undefined) reply.removeHeader('content-type')
  else reply.header('content-type', type)
  return payload
}
