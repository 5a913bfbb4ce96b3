import type { ServerResponse } from 'node:http'
import type { Socket } from 'node:net'
import * as pretend from './internals.js'

// Classes, not literals: V8 may put a literal among its old objects once such literals have lived long. A dead one there
// keeps its closures, and with them the whole request, until the old space is collected.

type Listener = (...args: unknown[]) => void

/**
 * What a handler sees of its response's socket while the response is held: one that outlives the client. Libraries that
 * watch the socket (on-finished, and with it `sendFile`) would otherwise stop a stream when the client leaves.
 */
export class OutlivingSocket implements ProxyHandler<Socket> {
  readonly #res: ServerResponse
  #socket: Socket | undefined
  #view: Socket | undefined
  #revealed = false
  #waiting: readonly { readonly event: string; readonly listener: Listener; readonly add: 'on' | 'once' }[] = []

  constructor(res: ServerResponse) {
    this.#res = res
    if (res.socket !== null) this.take(res.socket)
  }

  /** A pipelined response gets its socket late. Returns the view that stands in its place. */
  take(socket: Socket): Socket {
    this.#socket = socket
    this.#view = new Proxy(socket, this)
    pretend.socket(this.#res, this.#view)
    return this.#view
  }

  /** Puts the socket back: the view is the socket from now on, and the listeners that waited are on it. */
  reveal(): void {
    this.#revealed = true
    const socket = this.#socket
    if (socket === undefined) return
    if (this.#res.socket === this.#view) pretend.socket(this.#res, socket)
    for (const { event, listener, add } of this.#waiting) {
      if (!socket.closed) socket[add](event, listener)
      else if (event === 'close') process.nextTick(listener, socket.errored !== null)
    }
  }

  /** The view's trap. */
  get(socket: Socket, property: string | symbol): unknown {
    if (this.#revealed) return own(socket, property)
    switch (property) {
      case 'writable':
        return true
      case 'destroyed':
        return false
      case 'destroy':
        return (error?: Error) => void this.#res.destroy(error)
      case 'on':
      case 'addListener':
        return (event: string, listener: Listener) => this.#add(socket, event, listener, 'on')
      case 'once':
        return (event: string, listener: Listener) => this.#add(socket, event, listener, 'once')
      case 'off':
      case 'removeListener':
        return (event: string, listener: Listener) => this.#remove(socket, event, listener)
      default:
        return own(socket, property)
    }
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

/** The socket, but for `destroy()`: that is how a final error handler hangs up. */
export class GuardedSocket implements ProxyHandler<Socket> {
  readonly #hangUp: (error?: Error) => void

  constructor(hangUp: (error?: Error) => void) {
    this.#hangUp = hangUp
  }

  get(socket: Socket, property: string | symbol): unknown {
    if (property !== 'destroy') return own(socket, property)
    return (error?: Error) => this.#hangUp(error)
  }
}

/** Methods are bound, since native ones insist on their own object. A view must show what is fixed as it is. */
function own(socket: Socket, property: string | symbol): unknown {
  const value: unknown = Reflect.get(socket, property, socket)
  if (typeof value !== 'function') return value
  const { configurable, writable } = Reflect.getOwnPropertyDescriptor(socket, property) ?? { configurable: true }
  return configurable || writable ? value.bind(socket) : value
}
