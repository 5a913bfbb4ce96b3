import type { Answer } from '../record/record.js'
import type { Store } from '../store.js'

/** Whether `store` keeps its records in `inner`: it is the same store, or wraps it. */
export function isKeptIn(store: Store, inner: Store): boolean {
  if (store === inner) return true
  return store.around !== undefined && isKeptIn(store.around.store, inner)
}

/** An answer as the innermost store receives it. */
export function asKept(store: Store, key: string, fingerprint: string, answer: Answer): Answer {
  const { around } = store
  return around === undefined ? answer : asKept(around.store, key, fingerprint, around.toKeep(key, fingerprint, answer))
}
