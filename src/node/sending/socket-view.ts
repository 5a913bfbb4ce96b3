import type { ServerResponse } from 'node:http'
import type { Socket } from 'node:net'
import * as faked from '../faked.js'
import type { Callback } from '../node-errors.js'

// Classes, not literals: V8 may put a literal among its old objects once such literals have lived long. A dead one there
// keeps its closures, and with them the whole request, until the old space is collected.
//
// A trap creates its functions in other functions: V8 allocates for them on entry, whether they are created or not, and Node's
// `setHeader` calls a trap twice, to read the socket's server.

type Listener = (...args: unknown[]) => void

/** The ways to hang up by a socket. */
export type HangUp = 'destroy' | 'destroySoon' | 'end' | 'resetAndDestroy'

/** Is called when somebody hangs up by the socket: the response is destroyed instead. */
export interface Hanging {
  hangUp(by: HangUp, args: unknown[]): void
}

/** A listener that is added to the client's socket once that is revealed. */
interface Waiting {
  readonly event: string
  readonly listener: Listener
  readonly add: 'on' | 'once'
}

const NOBODY: readonly Waiting[] = []

/** The client's socket, except for hanging up: final error handlers, and many handlers, end a response that way. */
export class GuardedSocket implements ProxyHandler<Socket> {
  readonly #response: Hanging

  constructor(response: Hanging) {
    this.#response = response
  }

  get(socket: Socket, property: string | symbol, view: Socket): unknown {
    switch (property) {
      case 'destroy':
      case 'destroySoon':
      case 'end':
      case 'resetAndDestroy':
        return hangingUp(this.#response, property, view)
      default:
        return own(socket, property, view)
    }
  }
}

/**
 * The socket that a handler sees while its response is held: it outlives the client. Libraries that watch the socket
 * (on-finished, and with it `sendFile`) would otherwise stop a stream when the client leaves.
 */
export class OutlivingSocket extends GuardedSocket {
  readonly #res: ServerResponse
  #socket: Socket | undefined
  #view: Socket | undefined
  #revealed = false
  #waiting: readonly Waiting[] = NOBODY

  constructor(res: ServerResponse, response: Hanging) {
    super(response)
    this.#res = res
    if (res.socket !== null) this.take(res.socket)
  }

  /** A pipelined response gets its socket late. Returns the view that replaces it. */
  take(socket: Socket): Socket {
    this.#socket = socket
    this.#view = new Proxy(socket, this)
    faked.socketOfResponse(this.#res, this.#view)
    return this.#view
  }

  /** Shows Node's own socket, or the view of it, as `res.socket`. */
  show(isOwn: boolean): void {
    const from = isOwn ? this.#view : this.#socket
    const to = isOwn ? this.#socket : this.#view
    if (to !== undefined && this.#res.socket === from) faked.socketOfResponse(this.#res, to)
  }

  /** Shows the real socket: from now on the view forwards to it, and the waiting listeners are added to it. */
  reveal(): void {
    this.#revealed = true
    const socket = this.#socket
    if (socket === undefined) return
    this.show(true)
    if (this.#waiting !== NOBODY) this.#addTo(socket)
  }

  #addTo(socket: Socket): void {
    for (const { event, listener, add } of this.#waiting) {
      if (!socket.closed) socket[add](event, listener)
      else if (event === 'close') process.nextTick(listener, socket.errored !== null)
    }
  }

  /** The proxy's trap. */
  override get(socket: Socket, property: string | symbol, view: Socket): unknown {
    if (this.#revealed) return super.get(socket, property, view)
    switch (property) {
      case 'writable':
        return true
      case 'destroyed':
        return false
      case 'write':
        return socket.writable === false ? swallow : own(socket, property, view)
      case 'on':
      case 'addListener':
        return this.#adding(socket, 'on')
      case 'once':
        return this.#adding(socket, 'once')
      case 'off':
      case 'removeListener':
        return this.#removing(socket)
      default:
        return super.get(socket, property, view)
    }
  }

  #adding(socket: Socket, add: 'on' | 'once') {
    return (event: string, listener: Listener) => this.#add(socket, event, listener, add)
  }

  #removing(socket: Socket) {
    return (event: string, listener: Listener) => this.#remove(socket, event, listener)
  }

  #add(socket: Socket, event: string, listener: Listener, add: 'on' | 'once'): Socket | undefined {
    const waits = !this.#revealed && (event === 'close' || event === 'error')
    if (waits) this.#waiting = [...this.#waiting, { event, listener, add }]
    else socket[add](event, listener)
    return this.#view
  }

  #remove(socket: Socket, event: string, listener: Listener): Socket | undefined {
    this.#waiting = this.#waiting.filter((one) => one.event !== event || one.listener !== listener)
    socket.off(event, listener)
    return this.#view
  }
}

/** Discards what is written for a client that has left. */
function swallow(_chunk: unknown, encoding: unknown, callback: unknown): boolean {
  const done = typeof encoding === 'function' ? encoding : callback
  if (done !== undefined && done !== null) process.nextTick(done as Callback)
  return true
}

/**
 * Methods run on the socket, because native ones require it; if they return the socket, the view is returned.
 * Properties that are not configurable are returned unchanged.
 */
function own(socket: Socket, property: string | symbol, view: Socket): unknown {
  const value: unknown = socket[property as keyof Socket]
  return typeof value === 'function' && property !== 'constructor' ? methodOf(socket, property, value, view) : value
}

// biome-ignore lint/complexity/noBannedTypes: any method of a socket
function methodOf(socket: Socket, property: string | symbol, method: Function, view: Socket): unknown {
  const { configurable, writable } = Reflect.getOwnPropertyDescriptor(socket, property) ?? { configurable: true }
  if (!configurable && !writable) return method
  return (...args: unknown[]) => {
    const result = Reflect.apply(method, socket, args)
    return result === socket ? view : result
  }
}

function hangingUp(response: Hanging, by: HangUp, view: Socket) {
  return (...args: unknown[]) => {
    response.hangUp(by, args)
    return view
  }
}
