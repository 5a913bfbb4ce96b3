import { STATUS_CODES } from 'node:http'
import type { Context, Next } from 'koa'
import {
  type Answer,
  isCertainFailure,
  type MaybePromise,
  transactionLate,
  transactionStreamed,
  whenever,
} from '../core/index.js'
import {
  type HeaderPairs,
  type HeldAnswer,
  type RequestRun,
  type ResponseBody,
  readResponseBody,
} from '../http/index.js'
import { changedSince, type Head, isAscii, isRecoded } from '../node/head.js'
import { type HeaderSnapshot, headerOf, headersOf, restore, snapshotOf } from '../node/headers.js'
import type { HeldResponse } from '../node/held-response.js'
import { nothingThrown } from '../node/node-errors.js'
import { asOnWire, setHeaders } from '../node/sending/wire-head.js'
import { PHRASE_TYPE, putBody, takeBody } from './body.js'

/**
 * The answer of a Koa handler: it is in `ctx` when the handler has returned, and Koa writes it to the held response
 * later. The run is settled in between, before earlier middleware can change the answer. Anything else that is written,
 * such as an error page or a long stream, settles the run when the held response ends.
 */
export class KoaAnswer implements HeldAnswer {
  readonly #ctx: Context
  readonly #run: RequestRun
  readonly #response: HeldResponse
  /** The response's headers before the handler. */
  readonly #before: HeaderSnapshot
  /** The run has been settled with the answer in `ctx`. */
  #isGiven = false
  /** Koa's own fields when the handler's transaction was opened. */
  #notes: Readonly<Record<string, unknown>> = {}

  constructor(ctx: Context, run: RequestRun, response: HeldResponse) {
    this.#ctx = ctx
    this.#run = run
    this.#response = response
    this.#before = snapshotOf(ctx.res)
    run.heldBy(this)
  }

  /** Rejects with what the handler threw, for the application's error handling. */
  async follow(next: Next): Promise<void> {
    try {
      await next()
    } catch (thrown) {
      const error = thrown ?? nothingThrown(thrown)
      this.#run.willFailCertainly(isCertainFailure(error))
      if (!this.#isGiven) throw error
      this.#ctx.app.emit('error', error, this.#ctx) // A transaction has committed the answer, so it is sent.
    }
    const { headerSent, res, respond } = this.#ctx
    const isKoas = respond !== false && !headerSent && !res.writableEnded
    if (isKoas && !this.#isGiven) await this.#give(await this.#readBody())
  }

  async #readBody(): Promise<ResponseBody> {
    try {
      return await this.#responseBody()
    } catch (error) {
      // Written below Koa meanwhile: no error page follows.
      if (this.#ctx.headerSent) this.#ctx.res.destroy()
      throw error
    }
  }

  #responseBody(): MaybePromise<ResponseBody> {
    const body = takeBody(this.#ctx)
    return body instanceof Uint8Array
      ? { kind: 'whole', bytes: body }
      : readResponseBody(body, this.#run, this.#contentType())
  }

  async #give(body: ResponseBody): Promise<void> {
    putBody(this.#ctx, body)
    // Written below Koa while the body was read: the held response settles the run.
    if (this.#ctx.headerSent || body.kind !== 'whole') return
    const answer = this.#answer(body.bytes)
    const settled = this.#run.settle(answer)
    if (!(settled instanceof Promise)) return
    const headers = snapshotOf(this.#ctx.res)
    this.#response.suspend()
    await settled
    if (this.#response.resume()) this.#send(answer, body.bytes, headers)
  }

  /** Koa may have ended the response meanwhile, for a time limit in front, and then does not end it again. */
  #send(answer: Answer, bytes: Uint8Array, headers: HeaderSnapshot): void {
    const { res } = this.#ctx
    restore(headers, res)
    setHeaders(res, answer)
    res.statusCode = answer.status
    res.statusMessage = answer.statusMessage
    res.end(bytes)
  }

  #answer(bytes: Uint8Array): Answer {
    this.#isGiven = true
    const { status, statusMessage, headers } = this.#head(bytes)
    return { status, statusMessage, headers, body: this.#keeps(bytes) ? bytes : null }
  }

  /** In the bytes that Node sends before Koa's body. */
  #head(bytes: Uint8Array): Head {
    const { message, status, body, req, res } = this.#ctx
    const statusMessage = message === STATUS_CODES[status] ? '' : message
    const headers = this.#headers(bytes)
    const head = { status, statusMessage, headers, isAscii: isAscii(statusMessage, headers) }
    if (head.isAscii) return head
    const chunk = bytes.byteLength === 0 ? undefined : typeof body === 'string' ? body : bytes
    return asOnWire(req, headersOf(res), head, { isExplicit: false, by: 'end', chunk, encoding: undefined })
  }

  #headers({ byteLength }: Uint8Array): HeaderPairs {
    const { body, method, res } = this.#ctx
    const headers = changedSince(this.#before, res, body === null || method === 'HEAD')
    if (body !== undefined || byteLength === 0) return headers
    return [...headers.filter(([name]) => name.toLowerCase() !== 'content-type'), PHRASE_TYPE]
  }

  #keeps({ byteLength }: Uint8Array): boolean {
    const isPlain = !isRecoded(headerOf(this.#ctx.res, 'transfer-encoding'))
    return isPlain && this.#run.keepsBody(byteLength, this.#contentType())
  }

  #contentType(): string | null {
    return headerOf(this.#ctx.res, 'content-type')?.toString() ?? null
  }

  // --- in a transaction of the handler

  entered(): void {
    if (this.#isGiven) throw transactionLate()
    this.#response.entered()
    this.#notes = notesIn(this.#ctx.response)
  }

  reset(): void {
    this.#isGiven = false
    this.#response.reset()
    const { response } = this.#ctx
    for (const name of Object.keys(notesIn(response))) Reflect.deleteProperty(response, name)
    Object.assign(response, this.#notes)
  }

  /** The answer is in `ctx`, if anything was set since. Synchronous, unless it is a stream. */
  resolved(): MaybePromise<void> {
    this.#response.resolved()
    const { response } = this.#ctx
    if (Object.entries(notesIn(response)).every(([name, value]) => this.#notes[name] === value)) return
    return whenever(this.#responseBody(), (body) => {
      if (body.kind !== 'whole' || !this.#keeps(body.bytes)) throw transactionStreamed()
      putBody(this.#ctx, body)
      void this.#run.settle(this.#answer(body.bytes)) // Resolves after the COMMIT.
    })
  }

  leftBehind(): boolean {
    return this.#response.leftBehind()
  }

  left(): void {
    this.#response.left()
  }
}

/** Koa's own fields of a response: its body, and whether status and body were set. */
function notesIn(response: object): Record<string, unknown> {
  return Object.fromEntries(Object.entries(response).filter(([name]) => name.startsWith('_')))
}
