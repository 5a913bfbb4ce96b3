import { aboutCode } from './documentation.js'

/**
 * How the library can be misused. Closed: a new one is a minor release.
 *
 * - `options_invalid`: an option is missing, unknown, or breaks a rule. Thrown at construction; nothing was built.
 * - `scope_invalid`: `scope` did not name an account. Nothing ran, nothing was stored.
 * - `body_not_parsed`: a body was sent, but no parser ran before the middleware (JSON or a form; with a `fingerprint`, any
 *   body that nobody has read). Nothing ran, nothing was stored.
 * - `fingerprint_required`: the body has no form that can be compared: it is multipart, holds a value such as a Map, or was
 *   read into something else than `req.body`. Nothing ran, nothing was stored.
 * - `fingerprint_invalid`: `fingerprint` threw or returned nothing. Nothing ran, nothing was stored.
 * - `value_not_comparable`: `fingerprintOf` was given `undefined`, or a value that holds what has no JSON form, such as a Map or
 *   a function. Nothing ran, nothing was stored.
 * - `value_too_deep`: `fingerprintOf` was given a value of more than 1,000 levels. Nothing ran, nothing was stored.
 * - `input_invalid`: the `input` of a runner's operation is missing, or no JSON. Nothing ran, nothing was stored.
 * - `decode_failed`: a stored result could not be decoded (a runner's `decode`). Nothing ran, and its record stands.
 * - `skip_failed`: `skip` threw. Nothing ran, nothing was stored.
 * - `mounted_twice`: a request met the middleware a second time. The first claim stands and ends with its response.
 * - `response_begun`: a response was begun before the middleware, which cannot hold it any more. Nothing ran; a claim that
 *   was made is released.
 * - `response_unsupported`: the response is not Node's own of HTTP/1.1, so it cannot be held. Nothing ran; a claim that was
 *   made is released.
 * - `label_invalid`: `deriveKey` was given no label. Nothing changed.
 * - `lease_lost`: a reason with which `signal` aborts. Another attempt may run now, or has run.
 * - `run_failed`: a reason with which `signal` aborts. The run has ended as a failure in the handler's place, and its key is
 *   being released.
 * - `store_full`: a store refused a claim for want of room. Nothing ran, nothing was stored.
 * - `raw_body_consumed`: a body was read before the webhook receiver, or before a binding that reads bodies itself, and its bytes
 *   were not kept. Nothing ran, nothing was stored.
 * - `verify_failed`: the receiver's `verify` threw, or answered neither `true` nor `false`. Nothing ran, nothing was stored.
 * - `parse_failed`: the receiver's `parse` threw something that is no sender's fault, or answered no event. Nothing ran,
 *   nothing was stored.
 * - `arguments_invalid`: `inspect` or `resolve` was given no name of a record, or no answer, or an operation of a runner no key;
 *   nothing was sent to the store. Or a `CertainFailure` was given a status that it cannot have.
 * - `command_missing`: the store has no `inspect` or no `resolve`: they are optional. Nothing was sent to it.
 * - `store_failed`: the store failed, or did not answer in time. `inspect` changed nothing; whether `resolve` did, is not
 *   known: inspect the record, or resolve it again, which changes nothing that is resolved.
 *
 * Of transactions; nothing was committed by the call:
 * - `context_missing`: `transaction`, `step` or `completeIn` was given no context of a run.
 * - `context_foreign`: the run of the context keeps its record in another store.
 * - `transactions_missing`: the store was given no `transactions`.
 * - `transaction_nested`: another transaction of the run is open.
 * - `transaction_committed`: another transaction of the run has committed.
 * - `transaction_late`: the response was begun, or the run ended, before the transaction was opened.
 * - `transaction_unanswered`: its work resolved without an answer. It was rolled back.
 * - `transaction_streamed`: its answer is no answer in one piece. It was rolled back.
 * - `transaction_asynchronous`: its work returned a promise, where the store needs it to be synchronous. It was rolled back.
 * - `transaction_not_awaited`: the function of a runner returned while its transaction was open, and that was rolled back.
 * - `transaction_not_run`: the client says that it was committed, but its work did not end well.
 */
export type IdempotencyErrorCode =
  | 'options_invalid'
  | 'scope_invalid'
  | 'body_not_parsed'
  | 'fingerprint_required'
  | 'fingerprint_invalid'
  | 'value_not_comparable'
  | 'value_too_deep'
  | 'input_invalid'
  | 'decode_failed'
  | 'skip_failed'
  | 'mounted_twice'
  | 'response_begun'
  | 'response_unsupported'
  | 'label_invalid'
  | 'lease_lost'
  | 'run_failed'
  | 'store_full'
  | 'raw_body_consumed'
  | 'verify_failed'
  | 'parse_failed'
  | 'arguments_invalid'
  | 'command_missing'
  | 'store_failed'
  | 'context_missing'
  | 'context_foreign'
  | 'transactions_missing'
  | 'transaction_nested'
  | 'transaction_committed'
  | 'transaction_late'
  | 'transaction_unanswered'
  | 'transaction_streamed'
  | 'transaction_asynchronous'
  | 'transaction_not_awaited'
  | 'transaction_not_run'

/**
 * Misuse by the application: what happened, what was seen, what to do, and where the docs say more. Never holds a key, a body or a secret.
 * Decide by `code` rather than by `instanceof`: an ES module and a CommonJS copy of this class can meet in one process.
 */
export class IdempotencyError extends Error {
  override readonly name = 'IdempotencyError'
  readonly code: IdempotencyErrorCode

  constructor(code: IdempotencyErrorCode, message: string, options?: { readonly cause?: unknown }) {
    // Behind a list, on a line of its own.
    super(`${message}${message.includes('\n') ? '\n' : ' '}${aboutCode(code)}`, options)
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

const MOST_CAUSE_CHARACTERS = 300

/** What was thrown, in its own words, as they stand behind "failed": an error's message is for whoever reads errors. */
export function inItsWords(cause: unknown): string {
  try {
    const { message } = (cause ?? {}) as { message?: unknown }
    if (typeof message === 'string' && message.trim() !== '') {
      const words = message.trim().replace(/\s+/g, ' ').replace(/\.$/, '')
      return words.length <= MOST_CAUSE_CHARACTERS ? `: ${words}` : `: ${words.slice(0, MOST_CAUSE_CHARACTERS)}…`
    }
    return cause instanceof Error ? '' : ` with ${kindOf(cause)}`
  } catch {
    return '' // It throws where it is looked at.
  }
}
