/**
 * The entry `once-per-key/core`: the core and, for bindings of one's own, the engine that decides on requests, whose other types are in
 * `once-per-key/http`.
 */

export type { BeginReply as Begun } from './core/index.js'
export * from './core/index.js'
export { createRequestEngine as createEngine, type Decision, type RequestFacts } from './http/index.js'
