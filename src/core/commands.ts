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

/** Asks again, after growing pauses, what was not answered; `null`: nor was it before `until`. */
export async function askAgain<Reply>(
  name: CommandName,
  about: About,
  command: () => Promise<Reply>,
  until: number,
  timeoutMs: number,
  emit: Emit,
): Promise<Reply | null> {
  let pauseMs = FIRST_PAUSE_MS
  while (monotonicNow() + pauseMs < until) {
    await pause(pauseMs)
    const reply = await ask(name, about, called(command), timeoutMs, emit)
    if (reply !== null) return reply
    pauseMs = Math.min(pauseMs * 2, LONGEST_PAUSE_MS)
  }
  return null
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
