/**
 * How the library can be misused. Closed: a new one is a minor release.
 *
 * - `options_invalid`: an option is missing, unknown, or breaks a rule. Thrown at construction; nothing was built.
 * - `scope_invalid`: `scope` did not name an account. Nothing ran, nothing was stored.
 * - `body_not_parsed`: a body was sent, but no parser ran before the middleware. Nothing ran, nothing was stored.
 * - `fingerprint_required`: the body has no form that can be compared. Nothing ran, nothing was stored.
 * - `fingerprint_invalid`: `fingerprint` threw or answered nothing. Nothing ran, nothing was stored.
 * - `skip_failed`: `skip` threw. Nothing ran, nothing was stored.
 * - `mounted_twice`: a request met the middleware a second time. The first claim stands and ends with its response.
 * - `response_begun`: a response was begun before the middleware, which cannot hold it any more. Nothing ran; a claim that
 *   was made is released.
 * - `response_unsupported`: the response is not Node's own of HTTP/1.1, so it cannot be held. Nothing ran; a claim that was
 *   made is released.
 * - `label_invalid`: `deriveKey` was given no label. Nothing changed.
 * - `lease_lost`: the reason with which `signal` aborts. Another attempt may run now, or has run.
 * - `store_full`: a store refused a claim for want of room. Nothing ran, nothing was stored.
 * - `raw_body_consumed`: a delivery's body was read before the webhook receiver, and its bytes were not kept. Nothing ran,
 *   nothing was stored.
 * - `verify_failed`: the receiver's `verify` threw, or answered neither `true` nor `false`. Nothing ran, nothing was stored.
 * - `arguments_invalid`: `inspect` or `resolve` was given no name of a record, or no answer. Nothing was sent to the store.
 * - `command_missing`: the store has no `inspect` or no `resolve`: they are optional. Nothing was sent to it.
 * - `store_failed`: the store failed, or did not answer in time. `inspect` changed nothing; whether `resolve` did, is not
 *   known: inspect the record, or resolve it again, which changes nothing that is resolved.
 */
export type IdempotencyErrorCode =
  | 'options_invalid'
  | 'scope_invalid'
  | 'body_not_parsed'
  | 'fingerprint_required'
  | 'fingerprint_invalid'
  | 'skip_failed'
  | 'mounted_twice'
  | 'response_begun'
  | 'response_unsupported'
  | 'label_invalid'
  | 'lease_lost'
  | 'store_full'
  | 'raw_body_consumed'
  | 'verify_failed'
  | 'arguments_invalid'
  | 'command_missing'
  | 'store_failed'

/**
 * Misuse by the application: what happened, what was seen, what to do. Never holds a key, a body or a secret. Decide by
 * `code` rather than by `instanceof`: an ES module and a CommonJS copy of this class can meet in one process.
 */
export class IdempotencyError extends Error {
  override readonly name = 'IdempotencyError'
  readonly code: IdempotencyErrorCode

  constructor(code: IdempotencyErrorCode, message: string, options?: { readonly cause?: unknown }) {
    super(message, options)
    this.code = code
  }
}

/** What a value is, for a message: its kind, never its content. */
export function kindOf(value: unknown): string {
  if (value === null || value === undefined) return String(value)
  if (typeof value !== 'object') return `a ${typeof value}`
  if (Array.isArray(value)) return 'an array'
  const prototype: object | null = Object.getPrototypeOf(value)
  if (prototype === null) return 'an object (without prototype)'
  const { name } = prototype.constructor ?? {} // The prototype's: a parsed body brings any `constructor` of its own.
  return typeof name === 'string' ? `an object (${name})` : 'an object'
}
