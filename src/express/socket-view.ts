import type { ServerResponse } from 'node:http'
import type { Socket } from 'node:net'
import * as pretend from './internals.js'

type Listener = (...args: unknown[]) => void

/** What a held response shows as its socket. */
export interface OutlivingSocket {
  /** A pipelined response gets its socket late. Returns the view that stands in its place. */
  take(socket: Socket): Socket
  /** Puts the socket back: the response is Node's again. */
  reveal(): void
}

export function outlivingSocket(res: ServerResponse): OutlivingSocket {
  let taken: { readonly socket: Socket; readonly view: Socket; reveal(): void } | undefined

  function take(socket: Socket): Socket {
    taken = { socket, ...outlivingView(socket, (error) => void res.destroy(error)) }
    pretend.socket(res, taken.view)
    return taken.view
  }

  if (res.socket !== null) take(res.socket)
  return {
    take,
    reveal() {
      if (taken === undefined) return
      if (res.socket === taken.view) pretend.socket(res, taken.socket)
      taken.reveal()
    },
  }
}

/**
 * What a handler sees of its response's socket while the response is held: one that outlives the client. Libraries that
 * watch the socket (on-finished, and with it `sendFile`) would otherwise stop a stream when the client leaves.
 * `reveal` ends it: the view is the socket from then on, and the listeners that waited are on it.
 */
function outlivingView(socket: Socket, destroy: (error?: Error) => void): { view: Socket; reveal(): void } {
  let revealed = false
  let waiting: { readonly event: string; readonly listener: Listener; readonly add: 'on' | 'once' }[] = []
  let masks: Readonly<Record<string, unknown>> | undefined

  const view: Socket = new Proxy(socket, {
    get(target, property) {
      masks ??= createMasks()
      if (!revealed && typeof property === 'string' && Object.hasOwn(masks, property)) return masks[property]
      return own(target, property)
    },
  })

  function createMasks(): Readonly<Record<string, unknown>> {
    const on = add('on')
    return {
      writable: true,
      destroyed: false,
      destroy,
      on,
      addListener: on,
      once: add('once'),
      off,
      removeListener: off,
    }
  }

  function add(kind: 'on' | 'once'): (event: string, listener: Listener) => Socket {
    return (event, listener) => {
      if (!revealed && (event === 'close' || event === 'error')) waiting.push({ event, listener, add: kind })
      else socket[kind](event, listener)
      return view
    }
  }

  function off(event: string, listener: Listener): Socket {
    waiting = waiting.filter((one) => one.event !== event || one.listener !== listener)
    socket.off(event, listener)
    return view
  }

  function reveal(): void {
    revealed = true
    for (const { event, listener, add } of waiting) {
      if (!socket.closed) socket[add](event, listener)
      else if (event === 'close') process.nextTick(listener, socket.errored !== null)
    }
  }

  return { view, reveal }
}

/** The socket, but for `destroy()` without an error: that is how a final error handler hangs up. */
export function guardedView(socket: Socket, hangUp: () => void): Socket {
  const destroy = (error?: Error) => {
    if (error === undefined) hangUp()
    else socket.destroy(error)
  }
  return new Proxy(socket, {
    get: (target, property) => (property === 'destroy' ? destroy : own(target, property)),
  })
}

/** Methods are bound, since native ones insist on their own object. */
function own(socket: Socket, property: string | symbol): unknown {
  const value: unknown = Reflect.get(socket, property, socket)
  return typeof value === 'function' ? value.bind(socket) : value
}
