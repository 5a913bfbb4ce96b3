import { Readable } from 'node:stream'
import type { FastifyReply } from 'fastify'
import type { Answer } from '../core/index.js'
import { bodyHeaders, type HeaderPairs } from '../http/index.js'
import { bufferOf } from '../node/payload.js'

/** The content type of a stored answer, or none: Fastify would replace one that it cannot read, and add one. */
const TYPES = new WeakMap<FastifyReply, string | undefined>()

/** Sends an answer that the handler did not just make. */
export function sendStored(reply: FastifyReply, answer: Answer, extraHeaders: HeaderPairs = []): FastifyReply {
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
  if (body !== null && body.byteLength > 0) return reply.send(bufferOf(body))
  // Without a body Fastify would tell a HEAD that its length is 0. Of a stream it tells nothing.
  return reply.send(reply.request.method === 'HEAD' ? Readable.from([]) : undefined)
}

/** In `onSend`: such an answer has its own content type again. */
export function sentAsStored<Payload>(reply: FastifyReply, payload: Payload): Payload {
  if (!TYPES.has(reply)) return payload
  const type = TYPES.get(reply)
  if (type === undefined) reply.removeHeader('content-type')
  else reply.header('content-type', type)
  return payload
}
