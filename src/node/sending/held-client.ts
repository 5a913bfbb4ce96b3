import type { IncomingMessage, ServerResponse } from 'node:http'
import type { Socket } from 'node:net'
import * as faked from '../faked.js'
import { refuseUnlessHttp1 } from '../headers.js'
import { type Outlet, outletOf } from './outlet.js'
import { GuardedSocket, type Hanging, OutlivingSocket } from './socket-view.js'

/**
 * The client of a held response: its disconnection, which the handler does not see, and its socket, in place of which the
 * handler sees one that outlives it.
 */
export class HeldClient {
  readonly req: IncomingMessage
  readonly res: ServerResponse
  readonly outlet: Outlet
  /** Node's own. Some adapters have none. */
  readonly socket: Socket
  /** What the handler sees as `res.socket`. */
  readonly #outliving: OutlivingSocket
  /** What it sees as `req.socket` while Node's own is shown as `res.socket`. */
  #guarded: Socket
  /** The client has left, and 'close' waits for the handler's end. */
  #isCloseWithheld = false
  /** The response is Node's again: its socket, and its events. */
  #isLifted = false
  /** The answer was sent, or the connection closed: Node's own socket is shown from now on. */
  #isSocketFree = false
  /** Called if the connection closes before the response has had its turn on it. */
  #whenClosed: (() => void) | undefined

  constructor(req: IncomingMessage, res: ServerResponse, response: Hanging) {
    refuseUnlessHttp1(res)
    this.req = req
    this.res = res
    this.outlet = outletOf(res)
    this.socket = req.socket
    this.#outliving = new OutlivingSocket(res, response)
    this.#guarded = this.socket && new Proxy(this.socket, new GuardedSocket(response))
    faked.socketOfRequest(req, this.#guarded)
    if (faked.isClosed(res)) this.withholdClose() // The client left while its key was being claimed.
  }

  get isLifted(): boolean {
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
  take(socket: Socket): Socket {
    if (this.#whenClosed !== undefined) this.socket.off('close', this.#whenClosed)
    return this.#isLifted ? socket : this.#outliving.take(socket)
  }

  /** Node does not notify a response that waits for its turn. */
  onceClosed(stream: { clientLeft(): void }): void {
    this.#whenClosed = () => stream.clientLeft()
    this.socket?.once('close', this.#whenClosed)
  }

  /** The client has left before the handler ended. Reverts what Node has just set. */
  withholdClose(): void {
    this.#isCloseWithheld = true
    faked.closed(this.res, false)
  }

  /** Emits what was withheld: if the handler has ended, the response counts as finished, and for watchers as closed. */
  closeIfLeft(hasEnded: boolean): void {
    if (!this.#isCloseWithheld) return
    this.#isCloseWithheld = false
    this.lift()
    // Later, as Node does: a handler may add listeners after its end.
    process.nextTick(emitWithheld, this.res, hasEnded)
  }

  /** The client left before it was known that the handler waits for that. */
  emitCloseIfLeft(): void {
    if (!this.#isCloseWithheld) return
    this.#isCloseWithheld = false
    faked.closed(this.res, true)
    this.emitClose()
  }

  /** The client has left, and the handler waits for that. Hanging up still means the response. */
  emitClose(): boolean {
    this.lift()
    this.showSocket()
    const hadListener = this.outlet.emit.call(this.res, 'close')
    this.hideSocket()
    return hadListener
  }

  // --- its socket

  /** From now on the response is Node's again. */
  lift(): void {
    if (this.#isLifted) return
    this.#isLifted = true
    this.#outliving.reveal()
  }

  /** Hooks on the head, and code that counts a socket's requests, compare it with the socket that they know. */
  showSocket(): void {
    const { socket } = this.req
    if (socket !== this.socket) this.#guarded = socket
    faked.socketOfRequest(this.req, this.socket)
    this.#outliving.show(true)
  }

  /** From now on hanging up closes the real connection. */
  freeSocket(): void {
    this.#isSocketFree = true
    this.showSocket()
  }

  /** After the hooks: hanging up means the response again. */
  hideSocket(): void {
    if (this.#isSocketFree) return
    faked.socketOfRequest(this.req, this.#guarded)
    this.#outliving.show(false)
  }
}

function emitWithheld(res: ServerResponse, hasEnded: boolean): void {
  // Node listens too, and would detach a socket from a response that never had one.
  if (hasEnded && res.socket !== null) res.emit('finish')
  faked.closed(res, true)
  res.emit('close')
}
