/**
 * Where a client keeps the key of an operation from before its first try until its outcome is settled: `localStorage`, React
 * Native's `AsyncStorage`, or three functions of your own. Each may return a promise.
 */
export interface KeyStorage {
  /** What is kept under the name; `null` or `undefined`: nothing. */
  getItem(name: string): string | null | undefined | Promise<string | null | undefined>
  setItem(name: string, key: string): unknown
  removeItem(name: string): unknown
}

/**
 * A storage, or a function that returns the key of an operation, the same one each time: `(operation) => operation`.
 *
 * With a function nothing is kept, so the client cannot know whether an operation is new: each call is taken for one that
 * goes on with an earlier one.
 */
export type Keys = KeyStorage | ((operation: string) => string | Promise<string>)

/** Keys that live as long as this object does: for scripts, tests, and servers that may forget them on a restart. */
export function memoryKeys(): KeyStorage {
  const kept = new Map<string, string>()
  return {
    getItem: (name) => kept.get(name),
    setItem: (name, key) => kept.set(name, key),
    removeItem: (name) => kept.delete(name),
  }
}

/** The key of an operation, kept before it is returned. `isNew`: no earlier call can have sent it. */
export async function keyOf(keys: Keys, operation: string): Promise<{ readonly key: string; readonly isNew: boolean }> {
  if (typeof keys === 'function') return { key: await keys(operation), isNew: false }
  const name = nameOf(operation)
  const kept = await keys.getItem(name)
  const key = kept ?? newKey()
  const isNew = key !== kept
  if (isNew) await keys.setItem(name, key)
  return { key, isNew }
}

export async function forgetKey(keys: Keys, operation: string): Promise<void> {
  if (typeof keys !== 'function') await keys.removeItem(nameOf(operation))
}

/** So that an operation never meets another entry of the same storage. */
function nameOf(operation: string): string {
  return `once-per-key:${operation}`
}

/** A page that was loaded over plain HTTP has no `randomUUID`. */
function newKey(): string {
  return crypto.randomUUID?.() ?? crypto.getRandomValues(new Uint32Array(4)).join('-')
}
