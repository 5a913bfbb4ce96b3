import { type CommandName, type Emit, storeFailure } from './events.js'
import type { Identity } from './identity.js'
import { isReply } from './reply.js'

/** Which record a command is about, as events name it. */
type About = Pick<Identity, 'scope' | 'key'>

/** A command to the store that was not answered in time. It may still take effect. */
class StoreTimeout extends Error {
  override readonly name = 'StoreTimeout'
}

/** Milliseconds on a clock that never jumps. */
export function monotonicNow(): number {
  return performance.now()
}

/**
 * Calls the store with a time limit. `null`: it failed or did not answer in time, so the outcome is not known; an event
 * has said so.
 */
export function ask<Reply>(
  name: CommandName,
  about: About,
  command: Promise<Reply>,
  timeoutMs: number,
  emit: Emit,
): Promise<Reply | null> {
  return new Promise((resolve) => {
    let isOver = false
    const fail = (error: unknown): void => {
      if (isOver) return
      isOver = true
      clearTimeout(timer)
      emit({ type: 'store_failed', scope: about.scope, key: about.key, command: name, error: storeFailure(error) })
      resolve(null)
    }
    const timer = setTimeout(() => {
      fail(new StoreTimeout(`The store did not answer within ${timeoutMs} ms (storeTimeoutMs).`))
    }, timeoutMs).unref()
    command
      .then((reply) => {
        if (!isReply(name, reply)) throw new TypeError(`The store answered what is no reply to \`${name}\`.`)
        isOver = true
        clearTimeout(timer)
        resolve(reply)
      })
      .catch(fail)
  })
}

const FIRST_PAUSE_MS = 100
/** When the store is back, no key waits much longer for what is pending. */
const LONGEST_PAUSE_MS = 2_000
/** While what was asked before may still be answered: a client that waits for the store keeps each copy, with its answer. */
const LONGEST_UNANSWERED_PAUSE_MS = 10_000

/**
 * Asks again, after growing pauses, what was asked once and not answered in time: for the last time at `until`. Whatever is
 * answered late, the first time included, counts. `null`: nothing was answered.
 */
export function askAgain<Reply>(
  name: CommandName,
  about: About,
  command: () => Promise<Reply>,
  asked: Promise<Reply>,
  until: number,
  timeoutMs: number,
  emit: Emit,
): Promise<Reply | null> {
  return new Promise((resolve) => {
    let isOver = false
    let unanswered = 0
    /** Once one copy is answered, nothing depends on another. */
    const tell: Emit = (event) => {
      if (!isOver) emit(event)
    }
    hear(asked)
    void again()

    function hear(copy: Promise<Reply>): void {
      unanswered++
      const answered = copy.finally(() => unanswered--)
      answered.then((reply) => isReply(name, reply) && over(reply)).catch(() => {})
    }

    async function again(): Promise<void> {
      let pauseMs = FIRST_PAUSE_MS
      let leftMs = until - monotonicNow()
      while (leftMs > 0) {
        const isLast = pauseMs >= leftMs
        await pause(isLast ? Math.ceil(leftMs) : pauseMs)
        if (isOver) return
        const copy = called(command)
        hear(copy)
        const reply = await ask(name, about, copy, timeoutMs, tell)
        if (isOver || isLast || reply !== null) return over(reply)
        pauseMs = Math.min(pauseMs * 2, unanswered > 0 ? LONGEST_UNANSWERED_PAUSE_MS : LONGEST_PAUSE_MS)
        leftMs = until - monotonicNow()
      }
      over(null)
    }

    function over(reply: Reply | null): void {
      isOver = true
      resolve(reply)
    }
  })
}

/** A store of somebody's own may throw before it returns a promise, or return none. */
export function called<Reply>(command: () => Promise<Reply>): Promise<Reply> {
  try {
    return Promise.resolve(command())
  } catch (error) {
    return Promise.reject(error)
  }
}

/** A pause that keeps no process alive. */
export function pause(ms: number): Promise<void> {
  return new Promise((resolve) => {
    setTimeout(resolve, ms).unref()
  })
}
