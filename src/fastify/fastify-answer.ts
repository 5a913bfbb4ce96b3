import { Buffer } from 'node:buffer'
import type { FastifyReply } from 'fastify'
import { isCertainFailure, type MaybePromise, transactionLate, transactionStreamed, whenever } from '../core/index.js'
import { type HeaderPairs, type HeldAnswer, heldBody, type RequestRun } from '../http/index.js'
import { isSame } from '../node/headers.js'
import type { HeldResponse } from '../node/held-response.js'
import { payloadOf, sourceOf, streamOf } from '../node/payload.js'

type Headers = ReturnType<FastifyReply['getHeaders']>
/** Continues the hooks with a payload, or with an error instead. */
type Done = (error: Error | null, payload?: unknown) => void

/**
 * The answer of a Fastify handler: the payload in `onSend`. The run is settled there, before Fastify sends the payload. Anything
 * else that is written, such as after `reply.hijack()` or by a long stream, settles the run when the held response ends.
 */
export class FastifyAnswer implements HeldAnswer {
  readonly #reply: FastifyReply
  readonly #run: RequestRun
  readonly #response: HeldResponse
  /** The response's headers before the handler. */
  readonly #before: Headers
  /** `onSend` has received the answer: no other is sent. */
  #isGiven = false
  /** The run is settled, and Fastify sends the answer. */
  #isOut = false
  /** The reply when the handler opened a transaction; `undefined` unless one is open. */
  #entry: Entry | undefined

  constructor(reply: FastifyReply, run: RequestRun, response: HeldResponse) {
    this.#reply = reply
    this.#run = run
    this.#response = response
    this.#before = reply.getHeaders()
    run.heldBy(this)
  }

  /** In `onError`. */
  failed(error: unknown): void {
    if (!this.#isGiven) this.#run.willFailCertainly(isCertainFailure(error))
    else if (this.#isOut) this.#isGiven = false // The answer could not be sent: an error page follows.
  }

  /** In `onSend`. If an async handler returns nothing while this waits for the store, Fastify sends `undefined` too. */
  send(given: unknown, done: Done): void {
    if (this.#isGiven) {
      if (given !== undefined) this.#reply.log.warn('a second answer was not sent: the first one is being stored')
      return
    }
    this.#isGiven = true
    const payload = opened(this.#reply, given)
    const source = sourceOf(payload)
    if (source === null) {
      this.#settle(typeof payload === 'string' ? Buffer.from(payload) : ((payload as Uint8Array) ?? NO_BYTES), () =>
        done(null, payload),
      )
      return
    }
    heldBody(streamOf(source), this.#run, this.#contentType()).then(
      (body) => {
        if (body.kind === 'whole') this.#settle(body.bytes, () => done(null, payloadOf(body)))
        else if (this.#entry === undefined) done(null, payloadOf(body))
        else this.#entry.received(transactionStreamed())
      },
      (error: unknown) => {
        this.#isGiven = false
        done(error as Error)
      },
    )
  }

  #settle(bytes: Uint8Array, send: () => void): void {
    const isKept = this.#run.keepsBody(bytes.byteLength, this.#contentType())
    if (this.#entry !== undefined && !isKept) {
      this.#entry.received(transactionStreamed())
      return
    }
    const { statusCode, raw } = this.#reply
    const answer = {
      status: statusCode,
      statusMessage: raw.statusMessage ?? '',
      headers: changedSince(this.#before, this.#reply.getHeaders()),
      body: isKept ? bytes : null,
    }
    const settled = this.#run.settle(answer)
    this.#entry?.received(null)
    void whenever(settled, () => {
      this.#isOut = true
      send()
    })
  }

  #contentType(): string | null {
    return this.#reply.getHeader('content-type')?.toString() ?? null
  }

  // --- in a transaction of the handler

  entered(): void {
    if (this.#isGiven || this.#reply.sent) throw transactionLate()
    this.#response.entered()
    this.#entry = new Entry(this.#reply)
  }

  reset(): void {
    this.#isGiven = false
    this.#response.reset()
    this.#entry?.restore()
  }

  /** Synchronous if the earlier hooks of `onSend` are. */
  resolved(): MaybePromise<void> {
    this.#response.resolved()
    return this.#entry?.whenReceived()
  }

  left(): void {
    this.#response.left()
    this.#entry?.leave()
    this.#entry = undefined
  }
}

const NO_BYTES = Buffer.alloc(0)

/** The body of a `Response`; its status and headers go to the reply, as Fastify would do later. */
function opened(reply: FastifyReply, payload: unknown): unknown {
  if (!(payload instanceof Response)) return payload
  reply.code(payload.status)
  for (const [name, value] of payload.headers) reply.header(name, value)
  return payload.body ?? undefined
}

function changedSince(before: Headers, now: Headers): HeaderPairs {
  const changed: [string, string][] = []
  for (const [name, value] of Object.entries(now)) {
    if (value === undefined || name === 'content-length' || isSame(before[name], value)) continue
    for (const line of Array.isArray(value) ? value : [value]) changed.push([name, String(line)])
  }
  return changed
}

/** A reply as it was when a transaction was opened; it patches the reply while the transaction is open. */
class Entry {
  readonly #reply: FastifyReply
  readonly #headers: Headers
  readonly #status: number
  /** The handler has called `reply.send`: `received` follows. */
  #isSending = false
  /** Why the answer cannot be used; `null`: it can. `undefined` until `onSend` has received it. */
  #fault: Error | null | undefined
  #resolve: (() => void) | undefined

  constructor(reply: FastifyReply) {
    this.#reply = reply
    this.#headers = { ...reply.getHeaders() }
    this.#status = reply.statusCode
    const { send } = reply
    reply.send = (payload) => {
      this.#isSending = true
      return send.call(reply, payload)
    }
    // A reply is thenable: `return reply.send(…)` in the work would wait for a response that waits for the COMMIT.
    Object.defineProperty(reply, 'then', { value: undefined, configurable: true })
  }

  /** `onSend` has received the answer. */
  received(fault: Error | null): void {
    this.#fault = fault
    this.#resolve?.()
  }

  /** @throws IdempotencyError `transaction_streamed` */
  whenReceived(): MaybePromise<void> {
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
    const reply = this.#reply
    this.#isSending = false
    this.#fault = undefined
    for (const name of Object.keys(reply.getHeaders())) reply.removeHeader(name)
    for (const [name, value] of Object.entries(this.#headers)) reply.header(name, value)
    reply.code(this.#status)
  }

  leave(): void {
    Reflect.deleteProperty(this.#reply, 'send')
    Reflect.deleteProperty(this.#reply, 'then')
  }
}
