import type { Socket } from 'node:net'
import type { Callback } from '../node-errors.js'

type Listener = (...args: unknown[]) => void

/** The ways to hang up by a socket. */
export type HangUpMethod = 'destroy' | 'destroySoon' | 'end' | 'resetAndDestroy'

/** Is called when somebody hangs up by the socket: the response is destroyed instead. */
export interface HangUpListener {
  onHangUp(by: HangUpMethod, args: unknown[]): void
}

/** A listener that the client's socket has only while it is revealed. */
interface Watcher {
  readonly event: string
  readonly listener: Listener
  readonly add: 'on' | 'once'
}

const NOBODY: readonly Watcher[] = []

/** By the client's socket: those whose response has finished. */
const FREE = new WeakMap<Socket, SocketViews[]>()

/**
 * What is shown in place of a client's socket while a response is held. Each response on a connection is shown those of the one before:
 * code that knows a connection by its socket would otherwise add its listeners for each response, and they stay until the connection
 * closes.
 */
export class SocketViews implements HangUpListener {
  readonly socket: Socket
  /** Hanging up by it means the response. */
  readonly guarded: Socket
  /** It outlives the client, too. */
  readonly outliving: Socket
  readonly #outlives: OutlivingSocket
  /** `undefined`: it has finished, and hanging up means the connection. */
  #response: HangUpListener | undefined

  private constructor(socket: Socket) {
    this.socket = socket
    this.#outlives = new OutlivingSocket(this)
    this.guarded = new Proxy(socket, new GuardedSocket(this))
    this.outliving = new Proxy(socket, this.#outlives)
  }

  static acquire(socket: Socket, response: HangUpListener): SocketViews {
    const views = FREE.get(socket)?.pop() ?? new SocketViews(socket)
    views.#response = response
    views.#outlives.detachFrom(socket)
    return views
  }

  /** From now on the view that outlives the client forwards to its socket, and has its listeners there. */
  forwardToSocket(): void {
    this.#outlives.forwardTo(this.socket)
  }

  /** The response has finished. */
  release(): void {
    this.#response = undefined
    const free = FREE.get(this.socket)
    if (free === undefined) FREE.set(this.socket, [this])
    else free.push(this)
  }

  onHangUp(by: HangUpMethod, args: unknown[]): void {
    if (this.#response !== undefined) this.#response.onHangUp(by, args)
    else Reflect.apply(this.socket[by], this.socket, args)
  }
}

/** The client's socket, except for hanging up: final error handlers, and many handlers, end a response that way. */
class GuardedSocket implements ProxyHandler<Socket> {
  readonly #response: HangUpListener

  constructor(response: HangUpListener) {
    this.#response = response
  }

  get(socket: Socket, property: string | symbol, view: Socket): unknown {
    switch (property) {
      case 'destroy':
      case 'destroySoon':
      case 'end':
      case 'resetAndDestroy':
        return (...args: unknown[]) => {
          this.#response.onHangUp(property, args)
          return view
        }
      default:
        return forwardProperty(socket, property, view)
    }
  }
}

/**
 * The socket that a handler sees while its response is held: it outlives the client. Libraries that watch the socket
 * (on-finished, and with it `sendFile`) would otherwise stop a stream when the client leaves.
 */
class OutlivingSocket extends GuardedSocket {
  #isRevealed = false
  #watchers: readonly Watcher[] = NOBODY

  detachFrom(socket: Socket): void {
    this.#isRevealed = false
    for (const { event, listener } of this.#watchers) socket.removeListener(event, listener)
  }

  forwardTo(socket: Socket): void {
    if (this.#isRevealed) return
    this.#isRevealed = true
    for (const { event, listener, add } of this.#watchers) {
      if (!socket.closed) socket[add](event, listener)
      else if (event === 'close') process.nextTick(listener, socket.errored !== null)
    }
  }

  /** The proxy's trap. */
  override get(socket: Socket, property: string | symbol, view: Socket): unknown {
    switch (property) {
      case 'on':
      case 'addListener':
        return (event: string, listener: Listener) => this.#add(socket, event, listener, 'on', view)
      case 'once':
        return (event: string, listener: Listener) => this.#add(socket, event, listener, 'once', view)
      case 'off':
      case 'removeListener':
        return (event: string, listener: Listener) => this.#remove(socket, event, listener, view)
      default:
        return this.#isRevealed ? super.get(socket, property, view) : this.#getConnectedProperty(socket, property, view)
    }
  }

  #getConnectedProperty(socket: Socket, property: string | symbol, view: Socket): unknown {
    switch (property) {
      case 'writable':
        return true
      case 'destroyed':
        return false
      case 'write':
        return socket.writable === false ? discardWrite : forwardProperty(socket, property, view)
      default:
        return super.get(socket, property, view)
    }
  }

  #add(socket: Socket, event: string, listener: Listener, add: 'on' | 'once', view: Socket): Socket {
    const isWatcher = event === 'close' || event === 'error'
    if (isWatcher) this.#watchers = [...this.#watchers, { event, listener, add }]
    if (!isWatcher || this.#isRevealed) socket[add](event, listener)
    return view
  }

  #remove(socket: Socket, event: string, listener: Listener, view: Socket): Socket {
    this.#watchers = this.#watchers.filter((one) => one.event !== event || one.listener !== listener)
    // Not `off`, which sockets of serverless adapters lack.
    socket.removeListener(event, listener)
    return view
  }
}

/** Discards what is written for a client that has left. */
function discardWrite(_chunk: unknown, encoding: unknown, callback: unknown): boolean {
  const done = typeof encoding === 'function' ? encoding : callback
  if (done !== undefined && done !== null) process.nextTick(done as Callback)
  return true
}

/**
 * Methods run on the socket, because native ones require it; if they return the socket, the view is returned.
 * Properties that are not configurable are returned unchanged.
 */
function forwardProperty(socket: Socket, property: string | symbol, view: Socket): unknown {
  const value: unknown = socket[property as keyof Socket]
  return typeof value === 'function' && property !== 'constructor'
    ? bindSocketMethod(socket, property, value, view)
    : value
}

// biome-ignore lint/complexity/noBannedTypes: any method of a socket
function bindSocketMethod(socket: Socket, property: string | symbol, method: Function, view: Socket): unknown {
  const { configurable, writable } = Reflect.getOwnPropertyDescriptor(socket, property) ?? { configurable: true }
  if (!configurable && !writable) return method
  return (...args: unknown[]) => {
    const result = Reflect.apply(method, socket, args)
    return result === socket ? view : result
  }
}
