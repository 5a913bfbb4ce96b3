import { Buffer } from 'node:buffer'
import { type ServerResponse, STATUS_CODES } from 'node:http'
import { Readable } from 'node:stream'
import type { Context, Next } from 'koa'
import {
  type Answer,
  type MaybePromise,
  transactionLateError,
  transactionStreamedError,
  whenever,
} from '../core/index.js'
import {
  type AnswerBuffer,
  bodyHeaders,
  type HeaderPairs,
  type RequestRun,
  type ResponseBody,
  readResponseBody,
} from '../http/index.js'
import { createResponseHead, diffHeaders, isAsciiHead, type ResponseHead } from '../node/head.js'
import { getHeaderMap, getHeaderValue, type HeaderMap, HeadSnapshot, snapshotHeaders } from '../node/headers.js'
import type { BufferedResponse } from '../node/held-response.js'
import { reportErrorAsNonRefusal } from '../node/hold.js'
import { nothingThrownError } from '../node/node-errors.js'
import { isStreamedBody, toNodePayload, toWebStream } from '../node/payload.js'
import { addHeaders, setHeaders, toWireHead } from '../node/sending/send.js'

/**
 * The answer of a Koa handler: it is in `ctx` when the handler has returned, and Koa writes it to the held response
 * later. The run is settled in between, before earlier middleware can change the answer. Anything else that is written,
 * such as an error page or a long stream, settles the run when the held response ends.
 */
export class KoaAnswer implements AnswerBuffer {
  readonly #ctx: Context
  readonly #run: RequestRun
  readonly #response: BufferedResponse
  /** The response's headers before the handler. */
  readonly #before: HeaderMap
  /** The run has been settled with the answer in `ctx`. */
  #isGiven = false
  /** Koa's own fields when the handler's transaction was opened. */
  #notes: Readonly<Record<string, unknown>> = {}

  constructor(ctx: Context, run: RequestRun, response: BufferedResponse) {
    this.#ctx = ctx
    this.#run = run
    this.#response = response
    this.#before = snapshotHeaders(ctx.res)
    response.framework = this
  }

  /** Rejects with what the handler threw, for the application's error handling. */
  async runHandler(next: Next): Promise<void> {
    try {
      await this.#runIgnoringDisconnect(next)
    } catch (thrown) {
      const error = thrown ?? nothingThrownError(thrown)
      this.#run.reportError(error)
      if (!this.#isGiven) throw error
      this.#ctx.app.emit('error', error, this.#ctx) // A transaction has committed the answer, so it is sent.
    }
    const { headerSent, res, respond } = this.#ctx
    if (this.#isGiven) this.#run.stopped()
    const isKoas = respond !== false && !headerSent && !res.writableEnded
    if (isKoas && !this.#isGiven) await this.#settleRun(await this.#readBody())
  }

  async #readBody(): Promise<ResponseBody> {
    try {
      const body = this.#readContextBody()
      return body instanceof Promise ? await this.#runIgnoringDisconnect(() => body) : body
    } catch (error) {
      // Written below Koa meanwhile: no error page follows.
      if (this.#ctx.headerSent) this.#ctx.res.destroy()
      reportErrorAsNonRefusal(this.#run, error)
      throw error
    }
  }

  /** Koa's watcher of the connection would answer with an error page: a held response looks as if its client were there. */
  async #runIgnoringDisconnect<Result>(work: () => Promise<Result>): Promise<Result> {
    const ctx = this.#ctx
    const { onerror } = ctx
    ctx.onerror = (error) => {
      if (!error || error !== ctx.req.socket?.errored) onerror.call(ctx, error)
      else ctx.app.emit('error', Object.assign(error, { headerSent: true }), ctx) // As Koa does for a client that has left.
    }
    try {
      return await work()
    } finally {
      ctx.onerror = onerror
    }
  }

  #readContextBody(): MaybePromise<ResponseBody> {
    const body = takeBody(this.#ctx)
    if (body instanceof Uint8Array) return { kind: 'whole', bytes: body }
    const { 'content-type': type, 'content-length': length } = getHeaderMap(this.#ctx.res)
    return readResponseBody(body, this.#run, type?.[1].toString() ?? null, length?.[1].toString())
  }

  async #settleRun(body: ResponseBody): Promise<void> {
    replaceStreamedBody(this.#ctx, body)
    // Written below Koa while the body was read: the held response settles the run.
    if (this.#ctx.headerSent || body.kind !== 'whole') return
    const answer = this.#createAnswer(body.bytes)
    const settled = this.#run.settle(answer)
    this.#run.stopped()
    if (!(settled instanceof Promise)) return
    // Whatever is set while it is stored is undone.
    const asGiven = new HeadSnapshot(this.#ctx.res)
    const notes = getKoaFields(this.#ctx.response)
    this.#response.discardWrites()
    await settled
    const isEnded = this.#response.acceptWrites()
    restoreNotes(this.#ctx, notes)
    asGiven.restore()
    if (isEnded) this.#send(answer, body.bytes)
  }

  /** Koa may have ended the response meanwhile, for a time limit in front, and then does not end it again. */
  #send(answer: Answer, bytes: Uint8Array): void {
    const { res } = this.#ctx
    setHeaders(res, answer)
    res.statusCode = answer.status
    res.statusMessage = answer.statusMessage
    res.end(bytes)
  }

  #createAnswer(bytes: Uint8Array): Answer {
    this.#isGiven = true
    const { status, statusMessage, headers } = this.#createHead(bytes)
    return { status, statusMessage, headers, body: this.#response.isBodyKept(bytes) ? bytes : null }
  }

  /** In the bytes that Node sends before Koa's body. */
  #createHead(bytes: Uint8Array): ResponseHead {
    const { message, status, body, req, res } = this.#ctx
    const statusMessage = message === STATUS_CODES[status] ? '' : message
    const head = createResponseHead(status, statusMessage, this.#computeHeaders(bytes))
    const chunk = bytes.byteLength === 0 ? undefined : typeof body === 'string' ? body : bytes
    return toWireHead(req, () => getHeaderMap(res), head, { isExplicit: false, by: 'end', chunk, encoding: undefined })
  }

  #computeHeaders({ byteLength }: Uint8Array): HeaderPairs {
    const { body, method, res } = this.#ctx
    const headers = diffHeaders(this.#before, getHeaderMap(res), body === null || method === 'HEAD')
    if (body !== undefined || byteLength === 0) return headers
    return [...headers.filter(([name]) => name.toLowerCase() !== 'content-type'), PHRASE_TYPE]
  }

  // --- in a transaction of the handler

  onTransactionBegin(): void {
    if (this.#isGiven) throw transactionLateError()
    this.#notes = getKoaFields(this.#ctx.response)
  }

  onRollback(): void {
    this.#isGiven = false
    restoreNotes(this.#ctx, this.#notes)
  }

  /** The answer is in `ctx`, if anything was set since. Synchronous, unless it is a stream. */
  onWorkResolved(): MaybePromise<void> {
    const { response } = this.#ctx
    if (Object.entries(getKoaFields(response)).every(([name, value]) => this.#notes[name] === value)) return
    const isStream = isStreamedBody(this.#ctx.body)
    return whenever(this.#readContextBody(), (body) => {
      if (body.kind !== 'whole' || (isStream && !this.#response.isBodyKept(body.bytes)))
        throw transactionStreamedError()
      replaceStreamedBody(this.#ctx, body)
      void this.#run.settle(this.#createAnswer(body.bytes)) // Resolves after the COMMIT.
    })
  }
}

function restoreNotes({ response }: Context, notes: Readonly<Record<string, unknown>>): void {
  for (const name of Object.keys(getKoaFields(response))) Reflect.deleteProperty(response, name)
  Object.assign(response, notes)
}

/** Koa's own fields of a response: its body, and whether status and body were set. */
function getKoaFields(response: object): Record<string, unknown> {
  return Object.fromEntries(Object.entries(response).filter(([name]) => name.startsWith('_')))
}

/** RFC 9110 §15.3.5, §15.3.6 and §15.4.5. */
const EMPTY = new Set([204, 205, 304])

/** What Koa would send for `ctx.body`: bytes, or a stream of them. */
function takeBody(ctx: Context): Uint8Array | ReadableStream<Uint8Array> {
  if (isSentWithoutBody(ctx)) {
    if (!EMPTY.has(ctx.status)) announceLength(ctx)
    return NO_BYTES
  }
  const body: unknown = ctx.body === undefined ? setReasonPhraseBody(ctx) : ctx.body
  if (body === null) {
    ctx.remove('Content-Type') // As Koa does, after earlier middleware.
    return NO_BYTES
  }
  if (typeof body === 'string') return Buffer.from(body)
  if (body instanceof Uint8Array && Buffer.isBuffer(body)) return body
  return isStreamedBody(body) ? toWebStream(body) : setJsonBody(ctx, body)
}

/** Then Koa reads nothing of `ctx.body`, and destroys it if it is a stream. */
function isSentWithoutBody({ status, method }: Context): boolean {
  return EMPTY.has(status) || method === 'HEAD'
}

/** For a HEAD Koa tells the length of the body that it does not send: it belongs to the answer. */
function announceLength(ctx: Context): void {
  if (getHeaderValue(ctx.res, 'content-length') !== undefined) return
  const { length } = ctx.response
  if (Number.isInteger(length)) ctx.length = length
}

/**
 * If no body was set, Koa sends the reason phrase: it is set as the body, so that earlier middleware sees what it will
 * see with a replay. Not with 404, where earlier middleware renders a page if there is no body.
 */
function setReasonPhraseBody(ctx: Context): string {
  const { status, message } = ctx
  const phrase = message || String(status)
  if (status === 404) return phrase
  ctx.body = phrase
  ctx.type = 'text'
  ctx.status = status // Koa's setter has made it 200, unless it was set by Koa's own.
  ctx.message = message
  return phrase
}

/** An object becomes text once: these bytes are stored and sent, and earlier middleware sees them, as it does with a replay. */
function setJsonBody(ctx: Context, body: unknown): Buffer {
  const bytes = Buffer.from(JSON.stringify(body))
  const hasType = getHeaderValue(ctx.res, 'content-type') !== undefined
  ctx.body = bytes
  if (!hasType) ctx.remove('Content-Type') // The handler has removed it; Koa's setter has added the one of bytes.
  return bytes
}

const PHRASE_TYPE = ['Content-Type', 'text/plain; charset=utf-8'] as const

const NO_BYTES = Buffer.alloc(0)

/** Makes Koa send what was read of a stream, instead of the stream. Other bodies stay, for middleware that reads them. */
function replaceStreamedBody(ctx: Context, held: ResponseBody): void {
  if (!isStreamedBody(ctx.body) || isSentWithoutBody(ctx)) return
  const length = getHeaderValue(ctx.res, 'content-length')
  ctx.body = toNodePayload(held, ctx.res)
  if (length !== undefined && !ctx.headerSent) ctx.res.setHeader('Content-Length', length)
}

/** Sets an answer that the handler did not just make. */
export function setAnswer(
  ctx: Context,
  { status, statusMessage, headers, body }: Answer,
  extraHeaders: HeaderPairs = [],
): void {
  for (const name of [...bodyHeaders, 'Content-Length']) ctx.remove(name)
  setHeaders(ctx.res, { headers })
  const contentType = getHeaderValue(ctx.res, 'content-type')
  const length = getHeaderValue(ctx.res, 'content-length')
  ctx.status = status
  if (statusMessage !== '') ctx.message = statusMessage
  if (ctx.method === 'HEAD' && !EMPTY.has(status)) {
    ctx.body = Readable.from([]) // Koa tells no length of a stream.
    if (length !== undefined) ctx.res.setHeader('Content-Length', length)
  } else ctx.body = EMPTY.has(status) ? null : Buffer.from(body ?? NO_BYTES) // The bytes may be the store's own.
  if (contentType === undefined) ctx.remove('Content-Type')
  addHeaders(ctx.res, extraHeaders)
  if (!isAsciiHead(statusMessage, headers)) writeHeadFirst(ctx.res)
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
