import { within } from './request.js'

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
 * The key of an operation, if there is one: a storage may have lost it; when it was chosen, just before the first try (absent: unknown);
 * whether no earlier call can have sent it.
 */
type Key = readonly [key: string | null | undefined, sentAt?: number, isNew?: boolean]

/** The key of an operation, stored before it is returned. Rejects if nobody waits for it any more: then no key is stored. */
export async function keyOf(keys: Keys, operation: string, signal: AbortSignal): Promise<Key> {
  if (typeof keys === 'function') return [await keys(operation)]
  const name = PREFIX + operation
  const find = async () => {
    const kept = await keys.getItem(name)
    signal.throwIfAborted()
    // It begins with the time, so that each try can say when the first one was. A page over plain HTTP has no `randomUUID`.
    const own = [Date.now(), ...crypto.getRandomValues(new Uint32Array(4))].join('-')
    if (kept == null) await keys.setItem(name, own)
    // Without locks, another client may have stored its own meanwhile: the last one counts.
    const key = kept ?? (await keys.getItem(name))
    return [key, +`${key}`.slice(0, 13), key === own] as const
  }
  // A silent storage must not hold the lock when its call has ended. Nobody reads what is returned then.
  const turn = () => within(2147483647, signal, find) as Promise<Key>
  // In a sandboxed frame there are locks, and each request is denied. What failed in `find` fails again.
  return (globalThis as Platform).navigator?.locks?.request(name, turn).catch(find) ?? find()
}

/** Web Locks, where the platform has them: browsers do, on pages over HTTPS. */
interface Platform {
  readonly navigator?: {
    readonly locks?: { request<Result>(name: string, work: () => Promise<Result>): Promise<Result> }
  }
}

export async function forgetKey(keys: Keys, operation: string): Promise<void> {
  await (keys as Partial<KeyStorage>).removeItem?.(PREFIX + operation) // A function has nothing to remove.
}

/** So that operations do not collide with other entries of the storage. */
const PREFIX = 'once-per-key:'
