import type { Fault } from './failing-store.js'
import { gate } from './gate.js'

/** The command never reaches the store, and nothing is heard of it. */
export const hang: Fault = () => new Promise(() => {})

/** It takes effect, but nothing is heard of it: a lost reply. */
export const loseReply: Fault = async (take) => {
  await take()
  return new Promise(() => {})
}

/** It fails before it takes effect. */
export function failBefore(error: unknown = new Error('connection refused')): Fault {
  return () => Promise.reject(error)
}

/** It takes effect, and then fails: the caller cannot tell from `failBefore`. */
export function failAfter(error: unknown = new Error('connection reset')): Fault {
  return async (take) => {
    await take()
    throw error
  }
}

/** It throws before there is a promise, as a store of somebody's own may. */
export const throwAtOnce: Fault = () => {
  throw new Error('not connected')
}

/** It reaches the store late, as from the queue of a client that was offline. */
export function reachLate(ms: number): Fault {
  return async (take) => {
    await passed(ms)
    return take()
  }
}

/** It takes effect at once, and is answered late. */
export function answerLate(ms: number): Fault {
  return async (take) => {
    const reply = await take()
    await passed(ms)
    return reply
  }
}

/** It fails late, without effect. */
export function failLate(ms: number, error: unknown = new Error('gave up reconnecting')): Fault {
  return async () => {
    await passed(ms)
    throw error
  }
}

/** It is answered with what no store should answer. */
export function answerWith(reply: unknown): Fault {
  return () => Promise.resolve(reply) as Promise<never>
}

/** It waits at a gate, before it takes effect. */
export function gated(): { readonly fault: Fault; open(): void } {
  const { opened, open } = gate()
  const fault: Fault = async (take) => {
    await opened
    return take()
  }
  return { fault, open }
}

function passed(ms: number): Promise<void> {
  return new Promise((resolve) => setTimeout(resolve, ms))
}
