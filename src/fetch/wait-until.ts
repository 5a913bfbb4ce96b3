import { warnOnce } from '../core/index.js'
import type { Call } from './request.js'

/**
 * Has the platform wait for what is pending, if it can. A `waitUntil` that fails (that of a Worker does where it is called without its
 * object) changes nothing else: the claim has its owner, and the client gets the answer.
 */
export function waitFor({ waitUntil }: Pick<Call<unknown>, 'waitUntil'>, pending: Promise<void>): void {
  if (waitUntil === undefined) return
  try {
    Promise.resolve(waitUntil(pending)).catch(warn) // It may be an async function.
  } catch (error) {
    warn(error)
  }
}

function warn(error: unknown): void {
  const { message = String(error) } = (error ?? {}) as Partial<Error>
  warnOnce(
    'ONCE_PER_KEY_WAIT_UNTIL_FAILED',
    `waitUntil failed (${message}). Where the platform stops behind a response, a handler whose client has left may be cut off. Pass a ` +
      'function that calls it on its object: `(pending) => context.waitUntil(pending)`. This is printed once.',
  )
}
