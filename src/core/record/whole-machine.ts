import type { StoredRecord as Stored } from './machine.js'

export { enter, look, withhold } from './looked.js'
export { begin, type Change, complete, inspect, peek, release, renew, resolve, step, withStep } from './machine.js'
export { forget } from './shown.js'

/** A declaration of its own: bundlers of types take a re-exported alias for a value when it stands in another file. */
export type StoredRecord = Stored
