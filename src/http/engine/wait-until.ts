import { warnOnce } from '../../core/events/events.js'

/** Is given promises, which never reject, of what must end before the platform may stop. */
export type WaitUntil = (pending: Promise<void>) => void

/**
 * Has the platform wait for what is pending, if it can: only then is that asked for. A `waitUntil` that fails (that of a Worker does where
 * it is called without its object) changes nothing else: the claim has its owner, and the client gets the answer.
 */
export function waitFor(
  { waitUntil }: { readonly waitUntil?: WaitUntil | undefined },
  pending: () => Promise<void>,
): void {
  if (waitUntil === undefined) return
  try {
    Promise.resolve(waitUntil(pending())).catch(warn) // It may be an async function.
  } catch (error) {
    warn(error)
  }
}

function warn(error: unknown): void {
  const { message = String(error) } = (error ?? {}) as Partial<Error>
  warnOnce(
    'ONCE_PER_KEY_WAIT_UNTIL_FAILED',
    `waitUntil failed (${message}). Where the platform stops after a response, a handler whose client has left may be cut off. Pass a ` +
      'function that calls it on its object: `(pending) => context.waitUntil(pending)`. This is printed once.',
  )
}
