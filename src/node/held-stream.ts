import { Buffer } from 'node:buffer'
import { isEventStream } from '../http/answer.js'
import type { Callback } from './callbacks.js'
import * as faked from './faked.js'
import type { Head } from './head.js'
import { HeldBody, viewOf } from './held-body.js'
import { drain } from './outlet.js'
import { sendOpening } from './send.js'
import type { WayOut } from './way-out.js'

/**
 * What leaves while its handler still writes: all but the end. Without a length that is the last chunk, which Node's `end`
 * writes; with one, its last byte. Once the client has left, the bytes go nowhere, and the handler goes on.
 */
export class HeldStream {
  readonly #wayOut: WayOut
  /** How many bytes may still leave: all but the last of the announced length. */
  #mayLeave: number
  /** What waits for the record. */
  readonly #rest = new HeldBody()
  /** A 'drain' is on its way to a handler whose client has left. */
  #willDrain = false
  /** As the head left, hooks on it included. */
  #status = 0

  constructor(wayOut: WayOut) {
    this.#wayOut = wayOut
    const length = Number(wayOut.res.getHeader('Content-Length') ?? Number.POSITIVE_INFINITY)
    this.#mayLeave = length > 0 ? length - 1 : Number.POSITIVE_INFINITY
  }

  /** Sends the head, and what was written so far. Throws what hooks on the head throw. */
  open(head: Head, body: Buffer, done: Callback | undefined): boolean {
    const wayOut = this.#wayOut
    const { res, isGone } = wayOut
    faked.notBegun(res)
    wayOut.showSocket()
    try {
      if (res.socket === null) wayOut.onceClosed(this)
      const flows = sendOpening(wayOut, head, this.#departing(body), isGone ? undefined : done)
      this.#status = res.statusCode
      return isGone ? this.#swallow(done) : flows
    } finally {
      wayOut.hideSocket()
      if (isEventStream(res.getHeader('Content-Type'))) process.nextTick(() => wayOut.tellCloseIfLeft())
    }
  }

  /** Whoever sets another status once the head has left, as error handlers do, says that what has left is wrong. */
  get isDisowned(): boolean {
    return this.#wayOut.res.statusCode !== this.#status
  }

  write(chunk: unknown, encoding: unknown, done: Callback | undefined): boolean {
    const whole = viewOf(chunk, encoding)
    if (this.#wayOut.isGone) return this.#swallow(done)
    const bytes = this.#departing(whole)
    if (bytes.byteLength === 0 && whole.byteLength > 0) {
      if (done !== undefined) process.nextTick(done)
      return true
    }
    // To a write that its client's leaving has cut short, nothing has happened.
    const sent = done && ((error?: Error | null) => done(this.#wayOut.isGone ? null : error))
    const { outlet, res } = this.#wayOut
    return outlet.write.call(res, bytes, undefined, sent) !== false
  }

  /** What waited for the record, with what the handler ended with. */
  takeRest(last: Buffer): Buffer {
    if (last.byteLength > 0) this.#rest.add(last)
    return this.#rest.take()
  }

  /** A client must see that it does not get all: where nothing but the connection's end would tell, by a reset. */
  reset(): void {
    const { res } = this.#wayOut
    if (res.chunkedEncoding || res.hasHeader('Content-Length')) return
    try {
      res.socket?.resetAndDestroy()
    } catch {
      // Not a TCP socket, such as TLS's: it is destroyed as others are.
    }
  }

  /** A handler that waits for its client to read goes on. */
  clientLeft(): void {
    faked.needsNoDrain(this.#wayOut.res)
    this.#drainLater()
  }

  /** A source that never waits must not keep the process from all else: it goes on in the next turn. */
  #swallow(done: Callback | undefined): boolean {
    if (done !== undefined) process.nextTick(done)
    this.#drainLater()
    return false
  }

  #drainLater(): void {
    if (this.#willDrain) return
    this.#willDrain = true
    setImmediate(() => {
      this.#willDrain = false
      drain(this.#wayOut.res, this.#wayOut.outlet)
    })
  }

  /** The part that may leave now; the rest is kept. */
  #departing(bytes: Buffer): Buffer {
    if (bytes.byteLength <= this.#mayLeave) {
      this.#mayLeave -= bytes.byteLength
      return bytes
    }
    const departing = bytes.subarray(0, this.#mayLeave)
    this.#rest.add(Buffer.from(bytes.subarray(this.#mayLeave)))
    this.#mayLeave = 0
    return departing
  }
}
