import type { Answer } from '../record/record.js'
import type { Store } from '../store.js'

/** Whether `store` keeps its records in `inner`: it is the same store, or wraps it. */
export function isKeptIn(store: Store, inner: Store): boolean {
  if (store === inner) return true
  return store.around !== undefined && isKeptIn(store.around.store, inner)
}

/** The result of a step as the innermost store receives it. */
export function resultAsKept(
  store: Store,
  key: string,
  fingerprint: string,
  label: string,
  result: Uint8Array,
): Uint8Array {
  const { around } = store
  if (around === undefined) return result
  const kept = around.resultToKeep?.(key, fingerprint, label, result) ?? result
  return resultAsKept(around.store, key, fingerprint, label, kept)
}

/** The other way round. */
export function resultAsShown(
  store: Store,
  key: string,
  fingerprint: string,
  label: string,
  kept: Uint8Array,
): Uint8Array {
  const { around } = store
  if (around === undefined) return kept
  const inner = resultAsShown(around.store, key, fingerprint, label, kept)
  return around.resultToShow?.(key, fingerprint, label, inner) ?? inner
}

/** An answer as the innermost store receives it. */
export function asKept(store: Store, key: string, fingerprint: string, answer: Answer): Answer {
  const { around } = store
  return around === undefined ? answer : asKept(around.store, key, fingerprint, around.toKeep(key, fingerprint, answer))
}
