import type { Keys } from './keys.js'
import { isOfTheOperation, type Problem } from './reply.js'

export interface ClientOptions {
  /**
   * Where the key of an operation is kept: `localStorage` (it outlives a reload), `memoryKeys()`, an object with its three
   * functions, or a function that returns the key of an operation. No default, since a key that is lost with a page makes a
   * second payment of the first one's retry.
   */
  readonly keys: Keys
  /**
   * What sends a try.
   * @default the global `fetch`
   */
  readonly fetch?: typeof fetch
  /**
   * Time limit of a try, its body included, in milliseconds.
   * @default 10_000
   */
  readonly tryTimeoutMs?: number
  /**
   * Time limit of a call, its pauses included, in milliseconds. By default it outlasts a lease of the middleware (30 s), so that
   * a call can outlive the crash of a server. Whoever is told to wait longer ends at once, with `unknown`.
   * @default 60_000
   */
  readonly totalTimeoutMs?: number
  /**
   * How often a call sends its request.
   * @default 8
   */
  readonly maxTries?: number
  /**
   * Whether a refusal settles the operation although the end of an earlier try was not seen. By default: 400, 402, 409, 410 and
   * 422, unless the middleware itself refused; its service claims a key before it refuses, so a success would have been
   * replayed. `() => false` for a service that claims later, or whose handlers do not look into their books when they are
   * told that an earlier outcome is unknown.
   */
  readonly settles?: (refusal: Response, problem: Problem | undefined) => boolean
}

export type Rules = Required<ClientOptions>

/** @throws TypeError, RangeError for options that cannot be meant. */
export function rulesOf(options: ClientOptions): Rules {
  const { keys, fetch = (...sent) => globalThis.fetch(...sent), settles = isOfTheOperation } = options
  const { tryTimeoutMs = 10_000, totalTimeoutMs = 60_000, maxTries = 8 } = options
  if (!keys) throw new TypeError('The option `keys` is missing: give localStorage, say.')
  // A timer that gets more fires at once.
  if (![tryTimeoutMs, totalTimeoutMs, maxTries].every((limit) => limit >= 1 && limit <= 2147483647)) {
    throw new RangeError('tryTimeoutMs, totalTimeoutMs and maxTries must be from 1 to 2147483647.')
  }
  return { keys, fetch, tryTimeoutMs, totalTimeoutMs, maxTries, settles }
}
