import type { IncomingMessage, ServerResponse } from 'node:http'
import type { Socket } from 'node:net'
import type { HeaderPairs, Settled } from '../http/index.js'
import * as faked from './faked.js'
import type { Head } from './head.js'
import { type HeaderSnapshot, refuseUnlessHttp1, restore, snapshotOf } from './headers.js'
import { type Outlet, outletOf } from './outlet.js'
import { sendEnd, sendWhole } from './send.js'
import { GuardedSocket, type Hanging, OutlivingSocket } from './socket-view.js'

/** What a record says in place of the handler's answer. */
export type Other = Exclude<Settled, { action: 'send' }>

/** What holding responses needs of a binding: one object for all of them. */
export interface Binding {
  sendOther(wayOut: WayOut, other: Other): void
}

/** What a stream leaves to be done at its end. */
interface StreamEnd {
  takeRest(last: Buffer): Buffer
  reset(): void
}

/**
 * The way of a held response to its client: Node's functions, its socket, and its client's leaving, which the handler does not
 * see.
 */
export class WayOut {
  readonly req: IncomingMessage
  readonly res: ServerResponse
  /** Headers of this one request, added to whatever is sent. */
  readonly extraHeaders: HeaderPairs
  readonly outlet: Outlet
  /** The headers as they were before the handler. */
  readonly before: HeaderSnapshot
  /** Node's own. Adapters may have none. */
  readonly socket: Socket
  /** Sending it failed: the response is the application's again, for an error page. */
  isGivenBack = false
  readonly #binding: Binding
  /** Hears that sending failed after the record had been settled: what `end` would have thrown at the handler. */
  readonly #onError: (error: unknown) => void
  /** What the handler sees as `res.socket`. */
  readonly #outliving: OutlivingSocket
  /** What it sees as `req.socket`, while Node's own is shown. */
  #guarded: Socket
  /** The client has left, and 'close' waits for the handler's end. */
  #isCloseWithheld = false
  /** The response is Node's again: its socket, and its events. */
  #isLifted = false
  /** The answer is out, or the connection closed: Node's own socket is shown for good. */
  #isSocketFree = false
  /** Hears the connection close before the response has had its turn on it. */
  #whenClosed: (() => void) | undefined

  constructor(
    req: IncomingMessage,
    res: ServerResponse,
    extraHeaders: HeaderPairs,
    binding: Binding,
    onError: (error: unknown) => void,
    response: Hanging,
  ) {
    refuseUnlessHttp1(res)
    this.req = req
    this.res = res
    this.extraHeaders = extraHeaders
    this.outlet = outletOf(res)
    this.before = snapshotOf(res)
    this.socket = req.socket
    this.#binding = binding
    this.#onError = onError
    this.#outliving = new OutlivingSocket(res, response)
    this.#guarded = this.socket && new Proxy(this.socket, new GuardedSocket(response))
    faked.socketOfRequest(req, this.#guarded)
    if (faked.isClosed(res)) this.withholdClose() // The client left while its key was being claimed.
  }

  // --- what leaves

  /** Sends what follows from the run's end. A hook on the head may throw, and so may Node: the application hears it. */
  send(settled: Settled, head: Head, body: Buffer, stream: StreamEnd | undefined): void {
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
      // The record stands; the response goes to the application's errors.
      this.isGivenBack = true
      faked.giveBack(res, this.outlet)
      if (!res.headersSent) restore(this.before, res)
      this.#onError(error)
    }
    this.closeIfLeft(true)
  }

  /** Closes the connection in place of an end. */
  cut(error: Error | undefined, stream: StreamEnd | undefined): void {
    const { res } = this
    if (stream === undefined) faked.notBegun(res)
    faked.destroyed(res, false)
    this.lift()
    this.showSocket()
    // A pipelined response has no socket yet; Node 24 would leave the connection open for good.
    if (res.socket === null) res.once('socket', (late) => late.destroy(error))
    stream?.reset()
    this.outlet.destroy.call(res, error)
    this.closeIfLeft(false)
  }

  // --- its client

  get isLifted(): boolean {
    return this.#isLifted
  }

  /** Nothing that is sent arrives any more. */
  get isGone(): boolean {
    return this.#isCloseWithheld || this.socket?.writable === false
  }

  /** By Node, since the connection closed on which the response waited for its turn; and not by its handler. */
  isAborted(error: NodeJS.ErrnoException | undefined): boolean {
    return this.res.socket === null && this.socket?.destroyed && error?.code === 'ECONNRESET'
  }

  /** A pipelined response has waited for its turn. Returns what stands in the socket's place. */
  take(socket: Socket): Socket {
    if (this.#whenClosed !== undefined) this.socket.off('close', this.#whenClosed)
    return this.#isLifted ? socket : this.#outliving.take(socket)
  }

  /** Node tells a response nothing that waits for its turn. */
  onceClosed(stream: { clientLeft(): void }): void {
    this.#whenClosed = () => stream.clientLeft()
    this.socket?.once('close', this.#whenClosed)
  }

  /** The client has left; the handler has not. Node has just set what is taken back here. */
  withholdClose(): void {
    this.#isCloseWithheld = true
    faked.closed(this.res, false)
  }

  /** What was withheld: for its handler the response has come to its end, for its watchers it has closed. */
  closeIfLeft(hasEnded: boolean): void {
    if (!this.#isCloseWithheld) return
    this.#isCloseWithheld = false
    this.lift()
    // Later, as Node: a handler may begin to wait for them behind its end.
    process.nextTick(() => {
      // Node hears it, too, and would take a socket from a response that never had one.
      if (hasEnded && this.res.socket !== null) this.res.emit('finish')
      faked.closed(this.res, true)
      this.res.emit('close')
    })
  }

  /** The client left before anybody knew that the handler waits for it. */
  tellCloseIfLeft(): void {
    if (!this.#isCloseWithheld) return
    this.#isCloseWithheld = false
    faked.closed(this.res, true)
    this.tellClose()
  }

  /** The client has left, and the handler waits for it. To hang up still means the response. */
  tellClose(): boolean {
    this.lift()
    this.showSocket()
    const wasHeard = this.outlet.emit.call(this.res, 'close')
    this.hideSocket()
    return wasHeard
  }

  // --- its socket

  /** From here on the response is Node's again. */
  lift(): void {
    if (this.#isLifted) return
    this.#isLifted = true
    this.#outliving.reveal()
  }

  /** Hooks on the head, and whoever counts the requests of a socket, look for the one that they know. */
  showSocket(): void {
    const { socket } = this.req
    if (socket !== this.socket) this.#guarded = socket
    faked.socketOfRequest(this.req, this.socket)
    this.#outliving.show(true)
  }

  /** Nobody hangs up too early any more. */
  freeSocket(): void {
    this.#isSocketFree = true
    this.showSocket()
  }

  /** Behind them: whoever hangs up means the response. */
  hideSocket(): void {
    if (this.#isSocketFree) return
    faked.socketOfRequest(this.req, this.#guarded)
    this.#outliving.show(false)
  }
}
