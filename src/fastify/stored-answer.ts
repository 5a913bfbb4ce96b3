import type { FastifyReply } from 'fastify'
import type { Answer } from '../core/index.js'
import type { HeaderPairs } from '../http/index.js'
import { bufferOf } from '../node/payload.js'

/** Replies whose stored answer has no content type: Fastify would add one. */
const UNTYPED = new WeakSet<FastifyReply>()

/** Sends an answer that the handler did not just make. */
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

/** In `onSend`: removes the content type that Fastify has added to such an answer. */
export function sentAsStored<Payload>(reply: FastifyReply, payload: Payload): Payload {
  if (UNTYPED.has(reply)) reply.removeHeader('content-type')
  return payload
}
