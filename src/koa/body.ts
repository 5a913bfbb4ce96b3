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
 * What Koa would send for `ctx.body`: bytes, or a stream of them. A response whose body nobody has set has its reason phrase as
 * one: it is put there, for the record to have it too.
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

/** Has Koa send what was read of a stream, in its place. What was no stream stays, for middleware that looks at it. */
export function putBody(ctx: Context, held: HeldBody): void {
  if (sourceOf(ctx.body) === null) return
  const length = headerOf(ctx.res, 'content-length')
  ctx.body = payloadOf(held)
  if (length !== undefined) ctx.res.setHeader('Content-Length', length)
}

/** An answer that the handler has not made just now. */
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
