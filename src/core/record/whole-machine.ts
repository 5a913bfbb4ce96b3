import type { Change as Changed, StoredRecord as Stored } from './machine.js'

export { enter, look, withhold } from './looked.js'
export { applyStep, begin, complete, inspect, peek, release, renew, resolve, step } from './machine.js'
export { forget } from './shown.js'

/** Declarations of their own: bundlers of types take a re-exported alias for a value when it stands in another file. */
export type StoredRecord = Stored
export type Change<Reply> = Changed<Reply>
