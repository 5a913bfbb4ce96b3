/**
 * Stores the key of an operation from before its first try until its outcome is settled: `localStorage`, React Native's
 * `AsyncStorage`, or three functions of your own. Each may return a promise. They take effect in the
 * order of their calls.
 */
export interface KeyStorage {
  /** Returns the stored value; `null` or `undefined` if there is none. */
  getItem(name: string): string | null | undefined | Promise<string | null | undefined>
  setItem(name: string, key: string): unknown
  removeItem(name: string): unknown
}

/**
 * A storage, or a function that always returns the same key for an operation: `(operation) => operation`.
 *
 * With a function nothing is stored, so the client cannot know whether an operation is new: each call is treated as the
 * continuation of an earlier one.
 */
export type Keys = KeyStorage | ((operation: string) => string | Promise<string>)

/** Keys that live as long as this object: for scripts, tests, and servers that may lose them on a restart. */
export function memoryKeys(): KeyStorage {
  const kept = new Map<string, string>()
  return {
    getItem: (name) => kept.get(name),
    setItem: (name, key) => kept.set(name, key),
    removeItem: (name) => kept.delete(name),
  }
}

/**
 * The key of an operation, stored before it is returned. `isNew`: no earlier call can have sent it. Rejects if nobody waits
 * for it any more: then no key is stored.
 */
export async function keyOf(
  keys: Keys,
  operation: string,
  signal: AbortSignal,
): Promise<{ readonly key: string; readonly isNew: boolean }> {
  if (typeof keys === 'function') return { key: await keys(operation), isNew: false }
  const name = nameOf(operation)
  const find = async () => {
    const kept = await keys.getItem(name)
    signal.throwIfAborted()
    const own = newKey()
    if (kept == null) await keys.setItem(name, own)
    // Without locks, another client may have stored its own meanwhile: the last one counts.
    const key = kept ?? (await keys.getItem(name)) ?? own
    return { key, isNew: key === own }
  }
  return (globalThis as Platform).navigator?.locks?.request(name, find) ?? find()
}

/** Web Locks, where the platform has them: browsers do, on pages over HTTPS. */
interface Platform {
  readonly navigator?: {
    readonly locks?: { request<Result>(name: string, work: () => Promise<Result>): Promise<Result> }
  }
}

export async function forgetKey(keys: Keys, operation: string): Promise<void> {
  if (typeof keys !== 'function') await keys.removeItem(nameOf(operation))
}

/** A prefix, so that operations do not collide with other entries of the storage. */
function nameOf(operation: string): string {
  return `once-per-key:${operation}`
}

/** A page that was loaded over plain HTTP has no `randomUUID`. */
function newKey(): string {
  return crypto.randomUUID?.() ?? crypto.getRandomValues(new Uint32Array(4)).join('-')
}
