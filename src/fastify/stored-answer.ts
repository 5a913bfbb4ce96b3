import type { FastifyReply } from 'fastify'
import type { Answer } from '../core/index.js'
import type { HeaderPairs } from '../http/index.js'
import { bufferOf } from '../node/payload.js'

/** Replies whose answer has no content type: Fastify gives one to whatever has none. */
const UNTYPED = new WeakSet<FastifyReply>()

/** Sends an answer that the handler has not made just now. */
export function sendStored(reply: FastifyReply, answer: Answer, extraHeaders: HeaderPairs = []): FastifyReply {
  const { status, statusMessage, headers, body } = answer
  reply.code(status)
  if (statusMessage !== '') reply.raw.statusMessage = statusMessage
  const lines = new Map<string, string[]>()
  for (const [name, value] of [...headers, ...extraHeaders]) {
    const lowerCase = name.toLowerCase()
    lines.set(lowerCase, [...(lines.get(lowerCase) ?? []), value])
  }
  for (const [name, values] of lines) reply.header(name, values.length === 1 ? values[0] : values)
  if (!lines.has('content-type')) UNTYPED.add(reply)
  return reply.send(body === null || body.byteLength === 0 ? undefined : bufferOf(body))
}

/** The last change to such a reply. */
export function sentAsStored<Payload>(reply: FastifyReply, payload: Payload): Payload {
  if (UNTYPED.has(reply)) reply.removeHeader('content-type')
  return payload
}
