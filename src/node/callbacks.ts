/** What `write` and `end` call when they are done. */
export type Callback = (error?: Error | null) => void

/** Node takes a callback in the place of what stands before it. */
export function callbackOf(given: unknown, callback: unknown): Callback | undefined {
  return (typeof given === 'function' ? given : callback) as Callback | undefined
}
