import type { IncomingMessage, ServerResponse } from 'node:http'
import type { Socket } from 'node:net'
import { type Answer, type MaybePromise, runAfterwards, transactionLateError } from '../core/index.js'
import { isEventStream } from '../http/answer/answer.js'
import type { AnswerBuffer, HeaderPairs, RequestEnd, RequestRun } from '../http/index.js'
import * as faked from './faked.js'
import * as heads from './head.js'
import { getHeaderMap, getHeaderValue, ResponseCheckpoint } from './headers.js'
import { BodyBuffer, copyBytes } from './held-body.js'
import { StreamedResponse } from './held-stream.js'
import type { Callback } from './node-errors.js'
import * as nodeErrors from './node-errors.js'
import { hasNodeEnd, hasNodeWrite } from './sending/outlet.js'
import { type ReplacementSender, ResponseSender } from './sending/response-sender.js'
import { type BodyStart, toWireHead } from './sending/send.js'
import type { HangUpMethod } from './sending/socket-view.js'

/**
 * Holds a response from the handler's first byte to its last, settles the run, and only then sends it; of a stream, only
 * the end is held. The response outlives its client: a handler continues after a disconnection, and its end counts.
 */
export class BufferedResponse implements faked.ResponseOverrides, AnswerBuffer {
  readonly #req: IncomingMessage
  readonly #res: ServerResponse
  readonly #run: RequestRun
  readonly #sender: ResponseSender

  /** Only `#changeState` changes it. */
  #state: faked.BufferState = 'holding'
  /** The head that the handler handed over with its first byte, or with `writeHead`; before that `undefined`. */
  #head: heads.ResponseHead | undefined
  /** What it wrote while `holding`, and its last chunk. */
  readonly #body = new BodyBuffer()
  /** Sends a stream's bytes; `undefined` unless the response became a stream. */
  #stream: StreamedResponse | undefined
  /** The bytes to send at its end: all of them, or those of a stream that follow. */
  #last: Buffer | undefined = undefined
  /** It was ended at once, and Node writes it from what the handler has set. */
  #whole: heads.WholeResponse | undefined = undefined
  #brokenBy: Error | undefined = undefined
  /** The handler hung up after its end: the connection is closed after the answer. */
  #hangsUp = false
  /** The response was ended while its answer was `given`. */
  #isEndDiscarded = false
  /** Node's own `end` was called in place of `end`, and its 'finish' is to come. */
  #isEndedBelow = false
  /** The state before the handler's open transaction; `undefined` if none is open. Nothing is sent before it ends. */
  #entry: ResponseCheckpoint | undefined
  /** The answer of a framework whose handlers write it elsewhere first: it follows their transactions, too. */
  framework: AnswerBuffer | undefined = undefined

  /** From now on the handler writes to this instead of Node's response. */
  constructor(
    req: IncomingMessage,
    res: ServerResponse,
    run: RequestRun,
    extraHeaders: HeaderPairs,
    binding: ReplacementSender,
    onError: (error: unknown) => void,
  ) {
    this.#req = req
    this.#res = res
    this.#run = run
    this.#sender = new ResponseSender(req, res, extraHeaders, binding, onError, this)
    run.registerBuffer(this)
    faked.overrideResponse(res, this)
  }

  #changeState(state: faked.BufferState): void {
    this.#state = state
    faked.showBufferState(this.#res, state)
    if (state === 'finished' && this.#hangsUp) faked.closeAfterResponse(this.#res)
  }

  // --- what the handler does

  writeHead(status: number, reason: unknown, headers: unknown): void {
    const res = this.#res
    const { before, outlet } = this.#sender
    if (this.#state === 'given' || faked.isIgnoringHeaders(res)) return
    if (this.#head === undefined) {
      this.#head = heads.applyWriteHead(this.#req, res, before, status, reason, headers, outlet)
      faked.showAsBegun(res)
      return
    }
    // A wrapper of `write` may delay a stream's head, and a hook on the head may send another answer: then Node's own is called.
    if (!this.isSending || res.headersSent) throw nodeErrors.headersSentError()
    outlet.writeHead.call(res, status, reason, headers)
  }

  write(chunk: unknown, encoding: unknown, callback: unknown): boolean {
    const done = nodeErrors.pickCallback(encoding, callback)
    switch (this.#state) {
      case 'holding':
        this.#bufferChunk(chunk, encoding, 'write')
        if (!this.#canKeepBody(this.#body.byteLength) && heads.canStream(this.#req, this.#res))
          return this.#openStream(done)
        if (done !== undefined) process.nextTick(done)
        return true
      case 'streaming':
        return (this.#stream as StreamedResponse).write(chunk, encoding, done)
      case 'broken':
        return nodeErrors.failWriteAfterDestroy(done)
      default:
        return nodeErrors.failLateWrite(done)
    }
  }

  end(chunk: unknown, encoding: unknown, callback: unknown): void {
    const done = nodeErrors.pickCallback(chunk, nodeErrors.pickCallback(encoding, callback))
    const last = typeof chunk === 'function' ? undefined : chunk
    if (this.#state === 'finished') {
      if (done !== undefined) process.nextTick(done, nodeErrors.alreadyFinishedError())
      return
    }
    const isFirst = this.#state === 'holding' || this.#state === 'streaming'
    if (isFirst && (this.#stream?.isWrong ?? heads.isHeadStale(this.#head, this.#res)))
      return void this.destroy(undefined)
    if (last && done === undefined && this.#captureWhole(last, encoding)) return void this.#settleRun()
    if (isFirst && last) this.#bufferChunk(last, encoding, 'end')
    else if (isFirst) this.#captureHead('end')
    if (done !== undefined) this.#res.once('finish', done)
    // A second end is ignored, and the end of an abandoned response must not change the answer that is being sent.
    this.#isEndDiscarded ||= this.#state === 'given'
    if (!isFirst) return void this.#run.stopped() // As an error page does.
    this.#settleRun()
  }

  /** Whether the whole response is this chunk, and Node may write it as it is. Then its head and its bytes are known. */
  #captureWhole(chunk: unknown, encoding: unknown): boolean {
    if (this.#state !== 'holding' || this.#head !== undefined || this.#entry !== undefined) return false
    const whole = heads.captureWholeResponse(this.#sender, chunk, encoding)
    if (whole === undefined || !this.#canKeepBody(whole.body.byteLength)) return false
    this.#whole = whole
    this.#head = whole.head
    faked.showAsBegun(this.#res)
    return true
  }

  /** Whether Node's own `writeHead` writes the head: it has done so, or nothing is held any more. */
  get isSending(): boolean {
    return this.#stream !== undefined || this.#head === undefined || this.#sender.isBufferingOver
  }

  /** Node's own `end` was called, by code that got it elsewhere than from `res`: that is the handler's end. */
  #endIfEndedByNode(event: string | symbol): boolean {
    if (event === 'finish' && this.#isEndedBelow) {
      this.#isEndedBelow = false
      return true
    }
    if (this.isSending || !faked.hasNodeEndRun(this.#res)) return false
    this.#isEndedBelow = event !== 'finish'
    faked.resetNodeEnd(this.#res)
    this.end(undefined, undefined, undefined)
    return true
  }

  /** Without the handler's end, something else was sent below the hold: what the handler has done is not known. */
  #onFinished(): void {
    const isHandlers = this.#state === 'ended' || this.#state === 'broken'
    this.#changeState('finished')
    if (isHandlers) return
    this.#sender.endBuffering()
    void this.#run.fail()
  }

  flushHeaders(): void {
    if (this.#state === 'streaming') this.#sender.outlet.flushHeaders.call(this.#res)
    if (this.#state !== 'holding') return
    this.#captureHead('flushHeaders')
    if (this.#run.maySendParts && heads.canStream(this.#req, this.#res)) this.#openStream(undefined)
  }

  destroy(error: Error | undefined): void {
    if (this.#sender.isAborted(error)) return void this.#onConnectionClosed(error)
    if (this.#state === 'streaming' && this.#sender.isDestroyAnEnd)
      return void this.end(undefined, undefined, undefined)
    switch (this.#state) {
      case 'holding':
      case 'streaming':
        this.#changeState('broken')
        this.#brokenBy = error
        runAfterwards(this.#run.fail(), (end) => this.#sendResult(end))
        return
      case 'given':
      case 'ended':
        this.#hangsUp = true // The client gets the answer first.
        this.#run.stopped()
        return
      case 'finished':
        this.#sender.outlet.destroy.call(this.#res, error)
    }
  }

  /** The handler hung up by a socket of the request or the response. */
  onHangUp(by: HangUpMethod, args: unknown[]): void {
    if (this.#state !== 'finished') this.#res.destroy(by === 'destroy' ? (args[0] as Error | undefined) : undefined)
    else Reflect.apply(this.#sender.socket[by], this.#sender.socket, args)
  }

  hideDisconnect(): void {
    this.#sender.hideDisconnect()
  }

  /** Through `res`, so that hooks on the head that were mounted after the middleware run before the head is read. */
  #captureHead(by: BodyStart['by'], chunk?: unknown, encoding?: unknown): void {
    const isExplicit = this.#head !== undefined
    if (!isExplicit) this.#res.writeHead(this.#res.statusCode)
    if (!hasNodeEnd(this.#sender.outlet) || !hasNodeWrite(this.#sender.outlet)) return
    const beginning = { isExplicit, by, chunk, encoding }
    this.#head = toWireHead(this.#req, () => getHeaderMap(this.#res), this.#head as heads.ResponseHead, beginning)
  }

  #bufferChunk(chunk: unknown, encoding: unknown, by: 'write' | 'end'): void {
    const bytes = copyBytes(chunk, encoding)
    this.#captureHead(by, chunk, encoding)
    if (heads.mayHaveBody(this.#req, this.#res.statusCode)) this.#body.add(bytes)
  }

  #canKeepBody(byteLength: number): boolean {
    return this.#run.keepsBody(byteLength, getHeaderValue(this.#res, 'content-type'))
  }

  /** Whether this body is whole, and kept. */
  isBodyKept(body: Uint8Array): boolean {
    return this.#canKeepBody(body.byteLength) && heads.isReplayableBody(this.#req, this.#res, body)
  }

  // --- what a framework does that hands the answer to the run itself

  /** The answer is being stored: until `acceptWrites`, whatever is written is discarded. */
  discardWrites(): void {
    if (this.#state === 'holding' && this.#entry === undefined) this.#changeState('given')
  }

  /** The framework writes the answer now. Returns whether an end was discarded, which may have been the framework's own. */
  acceptWrites(): boolean {
    if (this.#state === 'given') this.#changeState('holding')
    return this.#isEndDiscarded
  }

  // --- what a transaction of the handler does

  onTransactionBegin(): void {
    if (this.#state !== 'holding' || this.#head !== undefined) throw transactionLateError()
    this.framework?.onTransactionBegin?.()
    this.#entry = new ResponseCheckpoint(this.#res)
  }

  onRollback(): void {
    this.#head = undefined
    this.#hangsUp = false
    this.#body.takeBytes()
    this.#entry?.restore()
    if (this.#state === 'ended') this.#changeState('holding')
    this.framework?.onRollback()
  }

  onWorkResolved(value: unknown): MaybePromise<void> {
    this.#entry?.assertNotStreamed()
    return this.framework?.onWorkResolved(value)
  }

  onTransactionEnd(): void {
    this.#entry = undefined
    this.framework?.onTransactionEnd?.()
  }

  // --- what its client does

  emit(event: string | symbol, args: unknown[]): boolean {
    if (event === 'close' && !this.#sender.isBufferingOver) return this.#onClientLeft()
    if (this.#endIfEndedByNode(event)) return true
    if (event === 'finish') this.#onFinished()
    if (event === 'finish' || event === 'close') this.#sender.releaseSocket()
    const given = event === 'socket' ? [this.#sender.onSocketAssigned(args[0] as Socket)] : args
    return this.#sender.outlet.emit.call(this.#res, event, ...given)
  }

  /** The connection closed before this response had its turn on it: from version 24, Node destroys such a response. */
  #onConnectionClosed(error: Error | undefined): void {
    if (this.#sender.isBufferingOver) return void this.#sender.outlet.destroy.call(this.#res, error)
    faked.showAsClosed(this.#res, true)
    this.#onClientLeft()
  }

  /** The handler continues and is not notified, unless it waits for exactly that (an event stream). */
  #onClientLeft(): boolean {
    this.#stream?.onClientLeft()
    const goesOn = this.#state === 'holding' || this.#state === 'streaming'
    const hadListener = goesOn && isEventStream(getHeaderValue(this.#res, 'content-type')) && this.#sender.emitClose()
    if (!hadListener) this.#sender.withholdClose()
    if (this.#state === 'broken') faked.showAsDestroyed(this.#res, true)
    return hadListener
  }

  // --- what happens to it

  /** Sends the head, and what was written so far. */
  #openStream(done: Callback | undefined): boolean {
    if (this.#entry !== undefined) {
      this.#body.takeBytes()
      return this.#entry.discardStreamedWrite(done)
    }
    this.#changeState('streaming')
    this.#stream = new StreamedResponse(this.#sender)
    try {
      return this.#stream.open(this.#head as heads.ResponseHead, this.#body.takeBytes(), done)
    } catch (error) {
      if (this.#res.headersSent) throw error
      // A hook on the head has thrown and nothing was sent: an error page is to follow.
      this.#head = undefined
      this.#stream = undefined
      this.#changeState('holding')
      throw error
    }
  }

  /** The handler has ended. If the store is synchronous, the answer is sent synchronously too. */
  #settleRun(): void {
    this.#changeState('ended')
    const terms = this.#stream !== undefined && this.#run.context.attempt > 0 ? { confirmed: true } : undefined
    const answer = this.#createAnswer()
    runAfterwards(this.#run.settle(answer, terms), (end) => this.#sendResult(end))
    if (this.#sender.isGivenBack || faked.hasNodeEndRun(this.#res)) return // Node has set it.
    faked.showAsEnded(this.#res)
  }

  #createAnswer(): Answer {
    const { status, statusMessage, headers } = this.#head as heads.ResponseHead
    if (this.#whole !== undefined) return { status, statusMessage, headers, body: this.#whole.body }
    const body = this.#body.takeBytes()
    this.#last = body
    const isKept = this.#stream === undefined && this.isBodyKept(body)
    return { status, statusMessage, headers, body: isKept ? body : null }
  }

  /**
   * The run has ended: sends the result. The end of a stream is sent only if the record was completed, or if the run has no
   * record (`runUnprotected`).
   */
  #sendResult(settled: RequestEnd): void {
    const stream = this.#stream
    if (this.#state === 'holding') this.#changeState('ended') // Its answer was rolled back, and no other has followed.
    if (this.#state === 'broken') this.#sender.closeConnection(this.#brokenBy, stream)
    else if (stream !== undefined && settled.action !== 'send') this.#sender.closeConnection(undefined, stream)
    else this.#sender.send(settled, this.#head as heads.ResponseHead, this.#last, stream, this.#whole)
  }
}
