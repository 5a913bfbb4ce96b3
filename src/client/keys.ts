import { readServerTime } from './reply.js'
import { runWithTimeLimit } from './request.js'

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
 * The key of an operation, if there is one: a storage may have lost it. When it was chosen, just before the first try, by the device's
 * clock and by the service's (not a number: unknown). Whether this client has just made it.
 */
type Key = readonly [key?: string | null, madeAt?: number, firstSent?: number, isNew?: boolean]

/**
 * The keys of one client. Others, in tabs or processes, may share its storage.
 *
 * The storage has the key of an operation under the operation's name. A client that finds a key there joins it, and notes that under
 * the key's own name. Each client remembers which key it has used itself.
 *
 * | event | the storage | this client |
 * |---|---|---|
 * | `send`, and it has used a key | gets that key, if it has none | sends that key |
 * | `send`, and one is stored | notes that somebody has joined | sends it, and remembers it |
 * | `send`, and none is stored | gets a new key | sends it, and remembers it |
 * | `done`, `unknown` | stays | remembers its key |
 * | `refused`, and nobody has joined | loses the key | forgets it |
 * | `refused`, and others may use the key | stays | forgets it |
 * | `forget` | loses the key and the note, unless the key is another one | forgets it |
 *
 * A storage cannot compare and set. So a client that joins notes it first, and then looks whether the key is still there. A client that
 * removes a key after a refusal looks afterwards whether somebody has joined, and puts it back. One of the two sees the other.
 */
export interface Keyring {
  /** The key of an operation, stored before it is returned. Rejects if nobody waits for it any more: then no key is stored. */
  find(operation: string, signal: AbortSignal): Promise<Key>
  /**
   * Ends the key of an operation. With `refused`, a key whose tries were certainly refused, only if nobody else can have used it, or if
   * `isSettled` says that the refusal speaks for all. Returns whether it has ended for this client.
   */
  end(operation: string, signal: AbortSignal, refused?: string, isSettled?: () => boolean): Promise<unknown>
  /**
   * Learns by how much the device's clock is wrong, from a response that complains of it. Returns whether that is news.
   *
   * Only keys that are made afterwards have the service's time. A key that was sent before keeps its time, since a correction could
   * make an expired key look young.
   */
  learnTime(response: Response): boolean
}

export function createKeyring(keys: Keys): Keyring {
  const used = new Map<string, string>()
  let offsetMs = 0

  return {
    async find(operation, signal) {
      if (typeof keys === 'function') return [await keys(operation)]
      const name = PREFIX + operation
      const search = async (isAgain?: true): Promise<Key> => {
        const known = used.get(operation)
        const found = await keys.getItem(name)
        signal.throwIfAborted()
        const key = known ?? found ?? createKey(offsetMs)
        if (found == null) await keys.setItem(name, key)
        else if (!known) await keys.setItem(PREFIX + key, key)
        const kept = known ?? (await keys.getItem(name))
        // Without locks, another client may have stored its own key meanwhile, or removed this one.
        if (kept !== key) return isAgain && (kept ?? found) == null ? [] : search(true)
        used.set(operation, key)
        return parseKeyTimes(key, !known && found == null)
      }
      return (await runWithLock(name, signal, () => search())) as Key
    },

    async end(operation, signal, refused, isSettled) {
      if (typeof keys === 'function') return true // There is nothing to remove.
      const name = PREFIX + operation
      return runWithLock(name, signal, async () => {
        const stored = await keys.getItem(name)
        const key = refused ?? used.get(operation) ?? stored
        const hasJoiner = async () => refused && (await keys.getItem(PREFIX + key)) != null
        let hasEnded = (!refused || stored === key) && !(await hasJoiner())
        if (hasEnded && key != null) {
          if (stored === key) await keys.removeItem(name)
          if (await hasJoiner()) {
            await keys.setItem(name, key)
            // Unless another client has stored its own key meanwhile.
            hasEnded = (await keys.getItem(name)) !== key
          } else await keys.removeItem(PREFIX + key)
        }
        hasEnded ||= !!isSettled?.()
        if (hasEnded) used.delete(operation)
        return hasEnded
      })
    },

    learnTime(response) {
      const seenMs = readServerTime(response) - Date.now()
      const isNews = Math.abs(seenMs - offsetMs) > 60_000 // A `Date` has whole seconds, and was under way.
      if (isNews) offsetMs = seenMs
      return isNews
    },
  }
}

/**
 * It begins with the time, and ends with the service's time if the device's is wrong, so that each try can say when the first one was.
 * A page over plain HTTP has no `randomUUID`.
 */
function createKey(offsetMs: number): string {
  const now = Date.now()
  const key = [now, ...crypto.getRandomValues(new Uint32Array(4))].join('-')
  return offsetMs ? `${key}-${now + offsetMs}` : key
}

function parseKeyTimes(key: string, isNew: boolean): Key {
  const madeAt = +key.slice(0, 13)
  return [key, madeAt, +(key.split('-')[5] ?? madeAt), isNew]
}

/** One client after the other, where the platform has locks. */
async function runWithLock<Result>(name: string, signal: AbortSignal | undefined, work: () => Promise<Result>) {
  // A silent storage must not hold the lock when its call has ended. Nobody reads what is returned then.
  const turn = () => runWithTimeLimit(2147483647, signal, work)
  // In a sandboxed frame there are locks, and each request is denied. What failed in `work` fails again.
  return (globalThis as Platform).navigator?.locks?.request(name, turn).catch(work) ?? work()
}

/** Web Locks, where the platform has them: browsers do, on pages over HTTPS. */
interface Platform {
  readonly navigator?: {
    readonly locks?: { request<Result>(name: string, work: () => Promise<Result>): Promise<Result> }
  }
}

/** So that operations do not collide with other entries of the storage. */
const PREFIX = 'once-per-key:'
