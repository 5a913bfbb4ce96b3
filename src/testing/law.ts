import type { Bench } from './bench.js'

/** One promise of a store, and its check. */
export interface Law {
  /** A sentence that begins with the name of its law. */
  readonly name: string
  /**
   * `'operable'`: only for stores with the operator's commands; `'listable'`: only for stores with `list`;
   * `'forgetful'`: only for stores with `forget` and `listScope`; `'stepped'`: only for stores with `step`.
   */
  readonly holds: 'everywhere' | 'operable' | 'listable' | 'forgetful' | 'stepped'
  readonly check: (bench: Bench) => Promise<void>
}

/** Laws for every store. */
export function everywhere(laws: Readonly<Record<string, Law['check']>>): Law[] {
  return Object.entries(laws).map(([name, check]) => ({ name, holds: 'everywhere', check }))
}
