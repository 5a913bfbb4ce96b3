import type { Bench } from './bench.js'

/** One promise of a store, and how to see that it keeps it. */
export interface Law {
  /** A sentence, named after the law that it belongs to. */
  readonly name: string
  /** `'operable'`: in a store that has the operator's commands. */
  readonly holds: 'everywhere' | 'operable'
  readonly check: (bench: Bench) => Promise<void>
}

/** Laws that hold in every store. */
export function everywhere(laws: Readonly<Record<string, Law['check']>>): Law[] {
  return Object.entries(laws).map(([name, check]) => ({ name, holds: 'everywhere', check }))
}
