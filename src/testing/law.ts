import type { Bench } from './bench.js'

/** One promise of a store, and how to see that it keeps it. */
export interface Law {
  /** A sentence, named after the law that it belongs to. */
  readonly name: string
  /**
   * `'outside'`: it follows from records of running and failed attempts, which a transactional store does not show.
   * `'operable'`: likewise, and of a store that has the operator's commands.
   */
  readonly holds: 'everywhere' | 'outside' | 'operable'
  readonly check: (bench: Bench) => Promise<void>
}

/** Laws that hold in every store. */
export function everywhere(laws: Readonly<Record<string, Law['check']>>): Law[] {
  return Object.entries(laws).map(([name, check]) => ({ name, holds: 'everywhere', check }))
}

/** Laws that hold where effects and record are apart: a running or failed attempt leaves a record for others to see. */
export function outside(laws: Readonly<Record<string, Law['check']>>): Law[] {
  return Object.entries(laws).map(([name, check]) => ({ name, holds: 'outside', check }))
}
