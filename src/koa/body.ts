import { Buffer } from 'node:buffer'
import type { Context } from 'koa'
import type { Answer } from '../core/index.js'
import type { HeaderPairs, HeldBody } from '../http/index.js'
import { headerOf } from '../node/headers.js'
import { bufferOf, payloadOf, sourceOf, streamOf } from '../node/payload.js'
import { setHeaders } from '../node/wire-head.js'

/** RFC 9110 §15.3.5, §15.3.6 and §15.4.5. */
const EMPTY = new Set([204, 205, 304])

/**
 * What Koa would send for `ctx.body`: bytes, or a stream of them. If no body was set, Koa sends the reason phrase: it
 * is set as the body, so that the record has it too.
 */
export function takeBody(ctx: Context): Uint8Array | ReadableStream<Uint8Array> {
  if (EMPTY.has(ctx.status) || ctx.method === 'HEAD') return NO_BYTES
  if (ctx.body === undefined) ctx.body = ctx.message || String(ctx.status)
  const body: unknown = ctx.body
  if (body === null) return NO_BYTES
  if (typeof body === 'string') return Buffer.from(body)
  if (body instanceof Uint8Array && Buffer.isBuffer(body)) return body
  const source = sourceOf(body)
  return source === null ? Buffer.from(JSON.stringify(body)) : streamOf(source)
}

const NO_BYTES = Buffer.alloc(0)

/** Makes Koa send what was read of a stream, instead of the stream. Other bodies stay, for middleware that reads them. */
export function putBody(ctx: Context, held: HeldBody): void {
  if (sourceOf(ctx.body) === null) return
  const length = headerOf(ctx.res, 'content-length')
  ctx.body = payloadOf(held)
  if (length !== undefined) ctx.res.setHeader('Content-Length', length)
}

/** Sets an answer that the handler did not just make. */
export function put(
  ctx: Context,
  { status, statusMessage, headers, body }: Answer,
  extraHeaders: HeaderPairs = [],
): void {
  for (const name of ['Content-Type', 'Content-Length', 'Content-Encoding']) ctx.remove(name)
  setHeaders(ctx.res, { headers })
  const contentType = headerOf(ctx.res, 'content-type')
  ctx.status = status
  if (statusMessage !== '') ctx.message = statusMessage
  ctx.body = EMPTY.has(status) ? null : bufferOf(body ?? NO_BYTES)
  if (contentType === undefined) ctx.remove('Content-Type')
  for (const [name, value] of extraHeaders) ctx.append(name, value)
}
