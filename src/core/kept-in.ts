import type { Answer } from './record.js'
import type { Store } from './store.js'

/** Whether a record that `store` keeps is kept in `inner`: that is the same store, or the one that it is around. */
export function isKeptIn(store: Store, inner: Store): boolean {
  if (store === inner) return true
  return store.around !== undefined && isKeptIn(store.around.store, inner)
}

/** An answer as the innermost store is given it. */
export function asKept(store: Store, key: string, fingerprint: string, answer: Answer): Answer {
  const { around } = store
  return around === undefined ? answer : asKept(around.store, key, fingerprint, around.toKeep(key, fingerprint, answer))
}
