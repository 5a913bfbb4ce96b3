import { Buffer } from 'node:buffer'
import type { ServerResponse } from 'node:http'
import { Readable } from 'node:stream'
import type { Context } from 'koa'
import type { Answer } from '../core/index.js'
import { bodyHeaders, type HeaderPairs, type ResponseBody } from '../http/index.js'
import { isAscii } from '../node/head.js'
import { headerOf } from '../node/headers.js'
import { bufferOf, isStreamed, payloadOf, streamOf } from '../node/payload.js'
import { setHeaders } from '../node/sending/wire-head.js'

/** RFC 9110 §15.3.5, §15.3.6 and §15.4.5. */
const EMPTY = new Set([204, 205, 304])

/** What Koa would send for `ctx.body`: bytes, or a stream of them. */
export function takeBody(ctx: Context): Uint8Array | ReadableStream<Uint8Array> {
  if (sendsNothing(ctx)) {
    if (!EMPTY.has(ctx.status)) announceLength(ctx)
    return NO_BYTES
  }
  const body: unknown = ctx.body === undefined ? phraseOf(ctx) : ctx.body
  if (body === null) return NO_BYTES
  if (typeof body === 'string') return Buffer.from(body)
  if (body instanceof Uint8Array && Buffer.isBuffer(body)) return body
  return isStreamed(body) ? streamOf(body) : jsonOf(ctx, body)
}

/** Then Koa reads nothing of `ctx.body`, and destroys it if it is a stream. */
function sendsNothing({ status, method }: Context): boolean {
  return EMPTY.has(status) || method === 'HEAD'
}

/** For a HEAD Koa tells the length of the body that it does not send: it belongs to the answer. */
function announceLength(ctx: Context): void {
  if (headerOf(ctx.res, 'content-length') !== undefined) return
  const { length } = ctx.response
  if (Number.isInteger(length)) ctx.length = length
}

/**
 * If no body was set, Koa sends the reason phrase: it is set as the body, so that earlier middleware sees what it will
 * see with a replay. Not with 404, where earlier middleware renders a page if there is no body.
 */
function phraseOf(ctx: Context): string {
  const { status, message } = ctx
  const phrase = message || String(status)
  if (status === 404) return phrase
  ctx.body = phrase
  ctx.status = status // Koa's setter has made it 200, unless it was set by Koa's own.
  ctx.message = message
  return phrase
}

/** An object becomes text once: these bytes are stored and sent, and earlier middleware sees them, as it does with a replay. */
function jsonOf(ctx: Context, body: unknown): Buffer {
  const bytes = Buffer.from(JSON.stringify(body))
  const hasType = headerOf(ctx.res, 'content-type') !== undefined
  ctx.body = bytes
  if (!hasType) ctx.remove('Content-Type') // The handler has removed it; Koa's setter has added the one of bytes.
  return bytes
}

/** The content type that Koa adds to a reason phrase. */
export const PHRASE_TYPE = ['Content-Type', 'text/plain; charset=utf-8'] as const

const NO_BYTES = Buffer.alloc(0)

/** Makes Koa send what was read of a stream, instead of the stream. Other bodies stay, for middleware that reads them. */
export function putBody(ctx: Context, held: ResponseBody): void {
  if (!isStreamed(ctx.body) || sendsNothing(ctx)) return
  const length = headerOf(ctx.res, 'content-length')
  ctx.body = payloadOf(held, ctx.res)
  if (length !== undefined && !ctx.headerSent) ctx.res.setHeader('Content-Length', length)
}

/** Sets an answer that the handler did not just make. */
export function put(
  ctx: Context,
  { status, statusMessage, headers, body }: Answer,
  extraHeaders: HeaderPairs = [],
): void {
  for (const name of [...bodyHeaders, 'Content-Length']) ctx.remove(name)
  setHeaders(ctx.res, { headers })
  const contentType = headerOf(ctx.res, 'content-type')
  const length = headerOf(ctx.res, 'content-length')
  ctx.status = status
  if (statusMessage !== '') ctx.message = statusMessage
  if (ctx.method === 'HEAD' && !EMPTY.has(status)) {
    ctx.body = Readable.from([]) // Koa tells no length of a stream.
    if (length !== undefined) ctx.res.setHeader('Content-Length', length)
  } else ctx.body = EMPTY.has(status) ? null : bufferOf(body ?? NO_BYTES)
  if (contentType === undefined) ctx.remove('Content-Type')
  for (const [name, value] of extraHeaders) {
    if (name === 'Link') ctx.append(name, value)
    else ctx.set(name, value)
  }
  if (!isAscii(statusMessage, headers)) writeHeadFirst(ctx.res)
}

/** Otherwise Node would encode `Content-Disposition` again, because Koa's `end` tells the length. */
function writeHeadFirst(res: ServerResponse): void {
  const { end } = res
  res.end = ((...args: []) => {
    res.end = end
    if (!res.headersSent) res.writeHead(res.statusCode)
    return res.end(...args)
  }) as typeof end
}
