import { Buffer } from 'node:buffer'
import { isEventStream } from '../http/answer/answer.js'
import * as faked from './faked.js'
import type { ResponseHead } from './head.js'
import { BodyBuffer, encodeChunk } from './held-body.js'
import type { Callback } from './node-errors.js'
import { emitDrain } from './sending/outlet.js'
import type { ResponseSender } from './sending/response-sender.js'
import { sendHeadAndFirstPiece } from './sending/send.js'

/**
 * Sends a response while its handler still writes, except its end. Without a length the end is the last chunk, which
 * Node's `end` writes; with a length it is the last byte. After the client has left, the bytes are discarded, and the
 * handler continues.
 */
export class StreamedResponse {
  readonly #sender: ResponseSender
  /** How many bytes may still be sent: all but the last of the announced length. */
  #mayLeave: number
  /** What waits for the record. */
  readonly #rest = new BodyBuffer()
  /** A 'drain' event is scheduled for a handler whose client has left. */
  #willDrain = false
  /** The status of the head that was sent, after hooks on it. */
  #status = 0

  constructor(sender: ResponseSender) {
    this.#sender = sender
    const length = Number(sender.res.getHeader('Content-Length') ?? Number.POSITIVE_INFINITY)
    this.#mayLeave = length > 0 ? length - 1 : Number.POSITIVE_INFINITY
  }

  /** Sends the head, and what was written so far. Throws what hooks on the head throw. */
  open(head: ResponseHead, body: Buffer, done: Callback | undefined): boolean {
    const sender = this.#sender
    const { res, isGone } = sender
    faked.showAsNotBegun(res)
    sender.showSocket()
    try {
      if (res.socket === null) sender.onConnectionClosed(this)
      const flows = sendHeadAndFirstPiece(sender, head, this.#takeSendableBytes(body), isGone ? undefined : done)
      this.#status = res.statusCode
      return isGone ? this.#discardWrite(done) : flows
    } finally {
      sender.hideSocket()
      if (isEventStream(res.getHeader('Content-Type'))) process.nextTick(() => sender.emitCloseIfWithheld())
    }
  }

  /** A status that is set after the head was sent, as error handlers do, means that what was sent is wrong. */
  get isWrong(): boolean {
    return this.#sender.res.statusCode !== this.#status
  }

  write(chunk: unknown, encoding: unknown, done: Callback | undefined): boolean {
    const whole = encodeChunk(chunk, encoding)
    if (this.#sender.isGone) return this.#discardWrite(done)
    const bytes = this.#takeSendableBytes(whole)
    if (bytes.byteLength === 0 && whole.byteLength > 0) {
      if (done !== undefined) process.nextTick(done)
      return true
    }
    // A write that was cut short because the client left reports success.
    const sent = done && ((error?: Error | null) => done(this.#sender.isGone ? null : error))
    const { outlet, res } = this.#sender
    return outlet.write.call(res, bytes, undefined, sent) !== false
  }

  /** Returns what waited for the record, followed by the handler's last chunk. */
  takeRemainingBytes(last: Buffer): Buffer {
    if (last.byteLength > 0) this.#rest.add(last)
    return this.#rest.takeBytes()
  }

  /** A client must notice that the body is incomplete: by a reset, if nothing else shows it. */
  resetConnection(): void {
    const { res } = this.#sender
    if (res.chunkedEncoding || res.hasHeader('Content-Length')) return
    try {
      res.socket?.resetAndDestroy()
    } catch {
      // Not a TCP socket, for example TLS: it is destroyed like others.
    }
  }

  /** Wakes a handler that waits for its client to read. */
  onClientLeft(): void {
    faked.clearNeedDrain(this.#sender.res)
    this.#drainLater()
  }

  /** Continues in the next turn, so that a source that never waits does not block the process. */
  #discardWrite(done: Callback | undefined): boolean {
    if (done !== undefined) process.nextTick(done)
    this.#drainLater()
    return false
  }

  #drainLater(): void {
    if (this.#willDrain) return
    this.#willDrain = true
    setImmediate(() => {
      this.#willDrain = false
      emitDrain(this.#sender.res, this.#sender.outlet)
    })
  }

  /** The part that may be sent now; the rest is kept. */
  #takeSendableBytes(bytes: Buffer): Buffer {
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
