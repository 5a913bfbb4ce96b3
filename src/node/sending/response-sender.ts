import type { IncomingMessage, ServerResponse } from 'node:http'
import type { HeaderPairs, RequestEnd } from '../../http/index.js'
import * as faked from '../faked.js'
import type { Head } from '../head.js'
import { type HeaderSnapshot, restore, snapshotOf } from '../headers.js'
import { HeldClient } from './held-client.js'
import { sendEnd, sendWhole } from './send.js'
import type { Hanging } from './socket-view.js'

/** What to send according to the record, instead of the handler's answer. */
export type Other = Exclude<RequestEnd, { action: 'send' }>

/** What held responses need from a binding: one object for all of them. */
export interface Binding {
  /** The framework destroys the response of a stream whose client has left: that is its end. */
  readonly destroysLeft?: true
  sendOther(sender: ResponseSender, other: Other): void
}

/** The part of a stream that is sent at its end. */
interface StreamEnd {
  takeRest(last: Buffer): Buffer
  reset(): void
}

/** Sends what becomes of a held response to its client. */
export class ResponseSender extends HeldClient {
  /** Headers of this one request, added to whatever is sent. */
  readonly extraHeaders: HeaderPairs
  /** The headers before the handler. */
  readonly before: HeaderSnapshot
  /** Sending failed: the response belongs to the application again, for an error page. */
  isGivenBack = false
  readonly #binding: Binding
  /** Called if sending fails after the record was settled, with the error that `end` would have thrown. */
  readonly #onError: (error: unknown) => void

  constructor(
    req: IncomingMessage,
    res: ServerResponse,
    extraHeaders: HeaderPairs,
    binding: Binding,
    onError: (error: unknown) => void,
    response: Hanging,
  ) {
    super(req, res, response)
    this.extraHeaders = extraHeaders
    this.before = snapshotOf(res)
    this.#binding = binding
    this.#onError = onError
  }

  /** Whether destroying the response is what the framework does when the client of an event stream has left. */
  get isLeft(): boolean {
    return this.isLifted && this.#binding.destroysLeft === true
  }

  /** Sends the result of the run. A hook on the head may throw, and so may Node: the application gets that error. */
  send(settled: RequestEnd, head: Head, body: Buffer, stream: StreamEnd | undefined): void {
    const { res } = this
    if (stream === undefined) faked.notBegun(res)
    this.lift()
    this.showSocket()
    try {
      if (stream !== undefined) sendEnd(this, stream.takeRest(body))
      else if (settled.action === 'send') sendWhole(this, head, body)
      else {
        restore(this.before, res)
        this.#binding.sendOther(this, settled)
      }
      this.hideSocket()
    } catch (error) {
      // The record stands; the response goes to the application's error handling.
      this.isGivenBack = true
      faked.giveBack(res, this.outlet)
      if (!res.headersSent) restore(this.before, res)
      this.#onError(error)
    }
    this.closeIfLeft(true)
  }

  /** Closes the connection instead of ending the response. */
  cut(error: Error | undefined, stream: StreamEnd | undefined): void {
    const { res } = this
    if (stream === undefined) faked.notBegun(res)
    faked.destroyed(res, false)
    this.lift()
    this.showSocket()
    // A pipelined response has no socket yet; Node 24 would never close the connection.
    if (res.socket === null) res.once('socket', (late) => late.destroy(error))
    stream?.reset()
    this.outlet.destroy.call(res, error)
    this.closeIfLeft(false)
  }
}
