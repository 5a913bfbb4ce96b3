import { Buffer } from 'node:buffer'
import { Readable } from 'node:stream'
import type { FastifyReply } from 'fastify'
import { type MaybePromise, transactionLateError, transactionStreamedError } from '../core/index.js'
import { type AnswerBuffer, type RequestRun, type ResponseBody, readResponseBody } from '../http/index.js'
import { diffHeaders, hasTransferCoding } from '../node/head.js'
import type { HeaderMap } from '../node/headers.js'
import { toBuffer } from '../node/held-body.js'
import type { BufferedResponse } from '../node/held-response.js'
import { reportErrorAsNonRefusal } from '../node/hold.js'
import { isBeingRead, isStreamedBody, toNodePayload, toWebStream } from '../node/payload.js'
import { getReplyHeaders, ReplyHead } from './reply-head.js'

/** Continues the hooks with a payload, or with an error instead. */
type Done = (error: Error | null, payload?: unknown) => void

/**
 * The answer of a Fastify handler: the payload in `onSend`. The run is settled there, before Fastify sends the payload. Anything
 * else that is written, such as after `reply.hijack()` or by a long stream, settles the run when the held response ends.
 */
export class FastifyAnswer implements AnswerBuffer {
  readonly #reply: FastifyReply
  readonly #run: RequestRun
  readonly #response: BufferedResponse
  /** The response's headers before the handler. */
  readonly #before: HeaderMap
  /** `onSend` has received the answer: no other is sent. */
  #isGiven = false
  /** The run is settled, and Fastify sends the answer. */
  #isOut = false
  /** The reply when the handler opened a transaction; `undefined` unless one is open. */
  #entry: ReplyCheckpoint | undefined

  constructor(reply: FastifyReply, run: RequestRun, response: BufferedResponse) {
    this.#reply = reply
    this.#run = run
    this.#response = response
    this.#before = getReplyHeaders(reply)
    response.framework = this
  }

  onHandlerCalled(): void {
    this.#run.forgetError()
  }

  onError(error: unknown): void {
    if (!this.#isGiven) this.#run.reportError(error)
    else if (this.#isOut) this.#onSendingFailed(error)
    else this.#run.stopped()
  }

  /**
   * In `onSend`. If an async handler returns nothing while this waits for the store, Fastify sends `undefined` too. What else
   * follows meanwhile, for example a late throw, changes nothing: the reply is sent as it was.
   */
  onSend(given: unknown, done: Done): void {
    if (this.#isGiven) {
      this.#run.stopped()
      if (given !== undefined) this.#reply.log.warn('a second answer was not sent: the first one is being stored')
      return
    }
    // Written below Fastify, or with a body that Fastify refuses by an error of its own: the held response settles the run.
    if (this.#entry === undefined && (this.#reply.raw.headersSent || isBeingRead(given))) {
      this.#pass(given, done)
      return
    }
    const payload = applyResponse(this.#reply, given)
    const head = new ReplyHead(this.#reply)
    this.#isGiven = true
    // With HEAD and 204 nothing of it is sent, so it is not read: it may have no end.
    if (isStreamedBody(payload) && head.mayHaveBody) this.#collect(head, payload, done)
    else this.#settle(head, payload, done)
  }

  #collect(head: ReplyHead, payload: Parameters<typeof toWebStream>[0], done: Done): void {
    const { raw } = this.#reply
    const closed = new AbortController()
    const whenClosed = () => closed.abort() // Ended below Fastify: nobody reads the rest.
    raw.once('close', whenClosed)
    const over = (step: () => void) => {
      raw.off('close', whenClosed)
      this.#runSafely(step)
    }
    readResponseBody(toWebStream(payload, closed.signal), this.#run, head.contentType, head.length).then(
      (body) => over(() => this.#onBodyCollected(head, body, done)),
      (error: Error) => over(() => this.#onBodyBroken(error, done)),
    )
  }

  #onBodyCollected(head: ReplyHead, body: ResponseBody, done: Done): void {
    const { raw } = this.#reply
    // Written below Fastify meanwhile. What follows a head that was written can only be a stream.
    if (raw.headersSent && this.#entry === undefined) {
      this.#isGiven = false
      this.#pass(body.kind === 'whole' ? Readable.from([toBuffer(body.bytes)]) : toNodePayload(body, raw), done)
      return
    }
    head.restore()
    const isWhole = body.kind === 'whole'
    if (this.#entry !== undefined && !(isWhole && this.#run.keepsBody(body.bytes.byteLength, head.contentType)))
      this.#entry.onReceived(transactionStreamedError())
    else if (isWhole) this.#settle(head, toBuffer(body.bytes), done)
    else this.#pass(toNodePayload(body, raw), done)
  }

  /** The source has failed. An error page follows, unless something was written already. */
  #onBodyBroken(error: Error, done: Done): void {
    const { raw } = this.#reply
    this.#isGiven = false
    if (raw.writableEnded) return
    if (raw.headersSent) throw error
    if (this.#entry === undefined) reportErrorAsNonRefusal(this.#run, error)
    done(error)
  }

  #settle(head: ReplyHead, payload: unknown, done: Done): void {
    const fault = head.findFault() ?? findPayloadFault(payload)
    if (fault !== null) {
      this.#leave(fault, payload, done)
      return
    }
    const bytes = typeof payload === 'string' ? Buffer.from(payload) : Buffer.isBuffer(payload) ? payload : NO_BYTES
    const isKept =
      this.#run.keepsBody(bytes.byteLength, head.contentType) &&
      !hasTransferCoding(head.headers['transfer-encoding']?.[1])
    const changed = diffHeaders(this.#before, head.getHeadersFor(payload), false)
    const { status, statusMessage, headers } = head.toWireHead(changed, payload)
    const settled = this.#run.settle({ status, statusMessage, headers, body: isKept ? bytes : null })
    this.#entry?.onReceived(null)
    if (settled instanceof Promise) this.#sendWhenStored(settled, head, payload, done)
    else this.#sendOut(payload, done)
  }

  #sendWhenStored(settled: Promise<unknown>, head: ReplyHead, payload: unknown, done: Done): void {
    this.#response.discardWrites()
    void settled.then(() =>
      this.#runSafely(() => {
        this.#response.acceptWrites()
        head.restore()
        this.#sendOut(payload, done)
      }),
    )
  }

  #sendOut(payload: unknown, done: Done): void {
    this.#isOut = true
    this.#pass(payload, done)
  }

  /** Nobody calls this: what is thrown ends the response, and not the process. */
  #runSafely(step: () => void): void {
    try {
      step()
    } catch (error) {
      const { raw, log } = this.#reply
      log.error({ err: error }, 'an answer could not be sent')
      if (!raw.writableEnded) raw.destroy()
    }
  }

  /** Fastify throws, unless a later hook makes it an answer that can be sent: then the held response settles the run. */
  #leave(fault: Error, payload: unknown, done: Done): void {
    if (this.#entry !== undefined) {
      this.#entry.onReceived(fault)
      return
    }
    this.#isGiven = false
    this.#pass(payload, done)
  }

  /** `done` throws what Fastify throws when it sends, and what later hooks throw. */
  #pass(payload: unknown, done: Done): void {
    try {
      done(null, payload)
    } catch (error) {
      if (this.#isOut) this.#onSendingFailed(error)
      done(error as Error)
    }
  }

  /** The run was settled with an answer that cannot be sent: an error page follows. */
  #onSendingFailed(error: unknown): void {
    this.#isOut = false
    this.#isGiven = false
    this.#reply.log.error({ err: error }, 'a stored answer could not be sent')
  }

  // --- in a transaction of the handler

  onTransactionBegin(): void {
    if (this.#isGiven || this.#reply.sent) throw transactionLateError()
    this.#entry = new ReplyCheckpoint(this.#reply)
  }

  onRollback(): void {
    this.#isGiven = false
    this.#entry?.restore()
  }

  /** Synchronous if the earlier hooks of `onSend` are. */
  onWorkResolved(): MaybePromise<void> {
    return this.#entry?.waitUntilReceived()
  }

  onTransactionEnd(): void {
    this.#entry?.unpatchReply()
    this.#entry = undefined
  }
}

const NO_BYTES = Buffer.alloc(0)

/** The body of a `Response`; its status and headers go to the reply, as Fastify would do later. */
function applyResponse(reply: FastifyReply, payload: unknown): unknown {
  if (!(payload instanceof Response)) return payload
  reply.code(payload.status)
  for (const [name, value] of payload.headers) reply.header(name, value)
  return payload.body ?? undefined
}

/** What Fastify would throw for it; `null`: it can be sent. */
function findPayloadFault(payload: unknown): Error | null {
  if (payload === undefined || payload === null || typeof payload === 'string' || Buffer.isBuffer(payload)) return null
  if (isStreamedBody(payload)) return null // It is not read: nothing of it is sent.
  return new TypeError(
    `A payload of type ${typeof payload} cannot be sent. Serialize it, or set a content type of JSON.`,
  )
}

/** A reply as it was when a transaction was opened; it patches the reply while the transaction is open. */
class ReplyCheckpoint {
  readonly #reply: FastifyReply
  readonly #head: ReplyHead
  /** The handler has called `reply.send`: `onReceived` follows. */
  #isSending = false
  /** Why the answer cannot be used; `null`: it can. `undefined` until `onSend` has received it. */
  #fault: Error | null | undefined
  #resolve: (() => void) | undefined

  constructor(reply: FastifyReply) {
    this.#reply = reply
    this.#head = new ReplyHead(reply)
    const { send } = reply
    reply.send = (payload) => {
      this.#isSending = true
      return send.call(reply, payload)
    }
    // A reply is thenable: `return reply.send(…)` in the work would wait for a response that waits for the COMMIT.
    Object.defineProperty(reply, 'then', { value: undefined, configurable: true })
  }

  /** `onSend` has received the answer. */
  onReceived(fault: Error | null): void {
    this.#fault = fault
    this.#resolve?.()
  }

  /** @throws IdempotencyError `transaction_streamed` */
  waitUntilReceived(): MaybePromise<void> {
    if (this.#fault !== undefined) return this.#throwFault()
    if (!this.#isSending) return
    return new Promise<void>((resolve) => {
      this.#resolve = resolve
    }).then(() => this.#throwFault())
  }

  #throwFault(): void {
    if (this.#fault) throw this.#fault
  }

  restore(): void {
    this.#isSending = false
    this.#fault = undefined
    this.#head.restore()
  }

  unpatchReply(): void {
    Reflect.deleteProperty(this.#reply, 'send')
    Reflect.deleteProperty(this.#reply, 'then')
  }
}
