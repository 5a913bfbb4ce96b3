import type { IncomingMessage, ServerResponse } from 'node:http'
import type { Socket } from 'node:net'
import type { HeaderPairs, RequestEnd } from '../../http/index.js'
import * as faked from '../faked.js'
import type { ResponseHead, WholeResponse } from '../head.js'
import { assertHttp1Response, type HeaderMap, restoreHeaders, snapshotHeaders } from '../headers.js'
import { getOriginalMethods, type OriginalMethods } from './outlet.js'
import { sendStreamEnd, sendUnchanged, sendWhole } from './send.js'
import { type HangUpListener, SocketViews } from './socket-view.js'

/**
 * The client of a held response: its disconnection, which the handler does not see, and its socket, in place of which the
 * handler sees one that outlives it.
 */
class ConnectedClient {
  readonly req: IncomingMessage
  readonly res: ServerResponse
  readonly outlet: OriginalMethods
  /** Node's own. Some adapters have none. */
  readonly socket: Socket
  readonly #response: HangUpListener
  readonly #ofRequest: SocketViews | undefined
  /** A pipelined response has none at first. */
  #ofResponse: SocketViews | undefined
  /** What the handler sees as `req.socket` while the response is held. */
  #shown: Socket
  /** Node's own. */
  #destroyRequest: IncomingMessage['destroy'] | undefined
  /** The client has left, and 'close' waits for the handler's end. */
  #isCloseWithheld = false
  /** The response is Node's again: its socket, and its events. */
  #isLifted = false
  /** The answer was sent, or the connection closed: Node's own socket is shown from now on. */
  #isSocketFree = false
  /** Called if the connection closes before the response has had its turn on it. */
  #whenClosed: (() => void) | undefined

  constructor(req: IncomingMessage, res: ServerResponse, response: HangUpListener) {
    assertHttp1Response(res)
    this.req = req
    this.res = res
    this.outlet = getOriginalMethods(res)
    this.socket = req.socket
    this.#response = response
    faked.rememberHeaderValidation(res)
    this.#ofRequest = this.socket && SocketViews.acquire(this.socket, response)
    this.#shown = this.#ofRequest?.guarded ?? this.socket
    faked.showRequestSocket(req, this.#shown)
    if (res.socket !== null) this.#hide(res.socket)
    if (faked.isClosed(res)) this.withholdClose() // The client left while its key was being claimed.
  }

  get isBufferingOver(): boolean {
    return this.#isLifted
  }

  /** Whether nothing that is sent arrives any more. */
  get isGone(): boolean {
    return this.#isCloseWithheld || this.socket?.writable === false
  }

  /** Whether Node destroyed the response because the connection closed before its turn, and not its handler. */
  isAborted(error: NodeJS.ErrnoException | undefined): boolean {
    return this.res.socket === null && this.socket?.destroyed && error?.code === 'ECONNRESET'
  }

  /** A pipelined response has got its turn. Returns what replaces the socket. */
  onSocketAssigned(socket: Socket): Socket {
    if (this.#whenClosed !== undefined) this.socket.off('close', this.#whenClosed)
    return this.#isLifted ? socket : this.#hide(socket)
  }

  /** Returns what is shown in its place as `res.socket`. */
  #hide(socket: Socket): Socket {
    this.#ofResponse = socket === this.socket ? this.#ofRequest : SocketViews.acquire(socket, this.#response)
    const { outliving } = this.#ofResponse as SocketViews
    faked.showResponseSocket(this.res, outliving)
    return outliving
  }

  /** Node does not notify a response that waits for its turn. */
  onConnectionClosed(stream: { onClientLeft(): void }): void {
    this.#whenClosed = () => stream.onClientLeft()
    this.socket?.once('close', this.#whenClosed)
  }

  /** The client has left before the handler ended. Reverts what Node has just set. */
  withholdClose(): void {
    this.#isCloseWithheld = true
    faked.showAsClosed(this.res, false)
  }

  /** Emits what was withheld: if the handler has ended, the response counts as finished, and for watchers as closed. */
  closeIfLeft(hasEnded: boolean): void {
    if (!this.#isCloseWithheld) return
    this.#isCloseWithheld = false
    this.endBuffering()
    // Later, as Node does: a handler may add listeners after its end.
    process.nextTick(emitWithheld, this.res, hasEnded)
  }

  /** The client left before it was known that the handler waits for that. */
  emitCloseIfWithheld(): void {
    if (!this.#isCloseWithheld) return
    this.#isCloseWithheld = false
    faked.showAsClosed(this.res, true)
    this.emitClose()
  }

  /** The client has left, and the handler waits for that. Hanging up still means the response. */
  emitClose(): boolean {
    this.endBuffering()
    this.showSocket()
    faked.forwardWrappedEnd(this.res)
    const hadListener = this.outlet.emit.call(this.res, 'close')
    this.hideSocket()
    return hadListener
  }

  // --- its socket

  /** From now on the response is Node's again. */
  endBuffering(): void {
    if (this.#isLifted) return
    this.#isLifted = true
    this.#showOfResponse(true)
    this.#ofRequest?.forwardToSocket()
    this.#ofResponse?.forwardToSocket()
  }

  /** Hooks on the head, and code that counts a socket's requests, compare it with the socket that they know. */
  showSocket(): void {
    const { socket } = this.req
    if (socket !== this.socket) this.#shown = socket
    faked.showRequestSocket(this.req, this.socket)
    this.#showOfResponse(true)
  }

  /** From now on hanging up closes the real connection. */
  releaseSocket(): void {
    if (this.#isSocketFree) return
    this.#isSocketFree = true
    this.showSocket()
    this.#ofRequest?.release()
    if (this.#ofResponse !== this.#ofRequest) this.#ofResponse?.release()
  }

  /** After the hooks: hanging up means the response again. */
  hideSocket(): void {
    if (this.#isSocketFree) return
    faked.showRequestSocket(this.req, this.#shown)
    this.#showOfResponse(false)
  }

  #showOfResponse(isOwn: boolean): void {
    const views = this.#ofResponse
    if (views === undefined) return
    const { outliving, socket } = views
    if (this.res.socket === (isOwn ? outliving : socket)) faked.showResponseSocket(this.res, isOwn ? socket : outliving)
  }

  /** The framework stops what a handler sends when it sees by `req.socket` that the client has left: it must see one that outlives it. */
  hideDisconnect(): void {
    const views = this.#ofRequest
    if (views === undefined || this.req.socket !== views.guarded) return
    this.#destroyRequest = this.req.destroy
    faked.overrideRequestDestroy(this.req, this)
    faked.showRequestSocket(this.req, views.outliving)
  }

  /** Node destroys the request of a client that has left, and closes its socket unless that is closed already: it must see that it is. */
  destroyRequest(error: Error | undefined): void {
    const { req } = this
    const { socket } = req
    const guarded = this.#ofRequest?.guarded as Socket
    if (socket === this.#ofRequest?.outliving) faked.showRequestSocket(req, guarded)
    this.#destroyRequest?.call(req, error)
    if (req.socket === guarded) faked.showRequestSocket(req, socket)
  }
}

function emitWithheld(res: ServerResponse, hasEnded: boolean): void {
  // Node listens too, and would detach a socket from a response that never had one.
  if (hasEnded && res.socket !== null) res.emit('finish')
  faked.showAsClosed(res, true)
  res.emit('close')
}

/** What to send according to the record, instead of the handler's answer. */
export type Replacement = Exclude<RequestEnd, { action: 'send' }>

/** What a held response needs from its binding. A binding may share one object between responses. */
export interface ReplacementSender {
  /** The framework destroys the response of a stream whose client has left: that is its end. */
  readonly destroysStreamOfLeftClient?: true
  sendReplacement(sender: ResponseSender, other: Replacement): void
}

/** The part of a stream that is sent at its end. */
interface StreamEnd {
  takeRemainingBytes(last: Buffer): Buffer
  resetConnection(): void
}

/** Sends what becomes of a held response to its client. */
export class ResponseSender extends ConnectedClient {
  /** Headers of this one request, added to whatever is sent. */
  readonly extraHeaders: HeaderPairs
  /** The headers before the handler. */
  readonly before: HeaderMap
  /** Sending failed: the response belongs to the application again, for an error page. */
  isGivenBack = false
  readonly #binding: ReplacementSender
  /** Called if sending fails after the record was settled, with the error that `end` would have thrown. */
  readonly #onError: (error: unknown) => void

  constructor(
    req: IncomingMessage,
    res: ServerResponse,
    extraHeaders: HeaderPairs,
    binding: ReplacementSender,
    onError: (error: unknown) => void,
    response: HangUpListener,
  ) {
    super(req, res, response)
    this.extraHeaders = extraHeaders
    this.before = snapshotHeaders(res)
    this.#binding = binding
    this.#onError = onError
  }

  /** Whether destroying the response is what the framework does when the client of an event stream has left. */
  get isDestroyAnEnd(): boolean {
    return this.isBufferingOver && this.#binding.destroysStreamOfLeftClient === true
  }

  /**
   * Sends the result of the run. `whole`: the handler's response, if it was captured as one. A hook on the head may throw, and so may Node:
   * the application gets that error.
   */
  send(
    settled: RequestEnd,
    head: ResponseHead,
    last: Buffer | undefined,
    stream: StreamEnd | undefined,
    whole: WholeResponse | undefined,
  ): void {
    const { res } = this
    if (stream === undefined) faked.showAsNotBegun(res)
    faked.acceptHeaders(res)
    this.endBuffering()
    this.showSocket()
    try {
      if (stream !== undefined) sendStreamEnd(this, stream.takeRemainingBytes(last as Buffer))
      else if (settled.action === 'send') {
        // Whoever has wrapped them since the handler's end is too late, and would change the head.
        if (whole !== undefined && faked.areMethodsOurs(res)) sendUnchanged(this, head, whole.sent)
        else sendWhole(this, head, whole?.body ?? (last as Buffer))
      } else {
        restoreHeaders(this.before, res)
        this.#binding.sendReplacement(this, settled)
      }
      faked.ignoreHeaders(res)
      this.hideSocket()
    } catch (error) {
      // The record stands; the response goes to the application's error handling.
      this.isGivenBack = true
      faked.restoreResponse(res, this.outlet)
      if (!res.headersSent) restoreHeaders(this.before, res)
      this.#onError(error)
    }
    this.closeIfLeft(true)
  }

  /** Closes the connection instead of ending the response. */
  closeConnection(error: Error | undefined, stream: StreamEnd | undefined): void {
    const { res } = this
    if (stream === undefined) faked.showAsNotBegun(res)
    faked.showAsDestroyed(res, false)
    this.endBuffering()
    this.showSocket()
    // A pipelined response has no socket yet; Node 24 would never close the connection.
    if (res.socket === null) res.once('socket', (late) => late.destroy(error))
    stream?.resetConnection()
    this.outlet.destroy.call(res, error)
    this.closeIfLeft(false)
  }
}
