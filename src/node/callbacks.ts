/** The callback of `write` and `end`. */
export type Callback = (error?: Error | null) => void

/** Node accepts a callback in place of an earlier optional argument. */
export function callbackOf(given: unknown, callback: unknown): Callback | undefined {
  const found = typeof given === 'function' ? given : callback
  return typeof found === 'function' ? (found as Callback) : undefined // Fastify passes null.
}
