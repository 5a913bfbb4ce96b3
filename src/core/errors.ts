/**
 * Misuse of the library by the application. A closed set: a new code is a minor release.
 *
 * - `options_invalid`: an option is missing, unknown, or breaks a rule. Thrown at construction, by a `transaction` on a
 *   pool, or by `step`; nothing was built or begun.
 * - `scope_invalid`: `scope` did not return a valid account name. Nothing ran, nothing was stored.
 * - `body_not_parsed`: a body was sent, but no parser ran before the middleware (JSON or a form; with a `fingerprint`,
 *   any unread body). Nothing ran, nothing was stored.
 * - `fingerprint_required`: the body cannot be compared: it is multipart, contains a value such as a Map, or was read
 *   into another property than `req.body`. Nothing ran, nothing was stored.
 * - `fingerprint_invalid`: `fingerprint` threw or returned nothing. Nothing ran, nothing was stored.
 * - `value_not_comparable`: `fingerprintOf` received `undefined`, or a value that contains something without a JSON
 *   form, such as a Map or a function. Nothing ran, nothing was stored.
 * - `value_too_deep`: `fingerprintOf` received a value with more than 1,000 levels. Nothing ran, nothing was stored.
 * - `input_invalid`: the `input` of a runner's operation is missing, or is not JSON. Nothing ran, nothing was stored.
 * - `decode_failed`: a stored result could not be decoded (a runner's `decode`). Nothing ran, and its record stands.
 * - `skip_failed`: `skip` threw. Nothing ran, nothing was stored.
 * - `first_sent_failed`: `firstSent` threw, or returned neither a Date nor `undefined`. Nothing ran, nothing was stored.
 * - `mounted_twice`: a request reached the middleware a second time, or a handler of Fetch or Hono dispatched one with its own key. The
 *   first claim stands and ends with its response.
 * - `response_begun`: the response was begun before the middleware, so it can no longer be held. Nothing ran; an
 *   existing claim is released.
 * - `response_unsupported`: the response is not Node's own HTTP/1.1 response, so it cannot be held. Nothing ran; an
 *   existing claim is released.
 * - `label_invalid`: `deriveKey` or `step` was called without a label, or `step` with one that is too long or has control
 *   characters. Nothing changed.
 * - `lease_lost`: a reason with which `signal` aborts, and a step or transaction that has not begun rejects. Another
 *   attempt may be running, or may have run.
 * - `run_failed`: a reason with which `signal` aborts. The run ended as a failure before the handler did, and its key
 *   is being released.
 * - `store_full`: a store refused a claim because it has no room. Nothing ran, nothing was stored.
 * - `raw_body_consumed`: a body was read before the webhook receiver, or before a binding that reads bodies itself, and
 *   its raw bytes were not kept. Nothing ran, nothing was stored.
 * - `verify_failed`: the receiver's `verify` threw, or returned neither `true` nor `false`. Nothing ran, nothing was
 *   stored.
 * - `parse_failed`: the receiver's `parse` threw an error that is not the sender's fault, or returned no event. Nothing
 *   ran, nothing was stored.
 * - `arguments_invalid`: `inspect` or `resolve` was called without a record's name or an answer, or a runner's
 *   operation without a key; nothing was sent to the store. Or a `CertainFailure` was given a status that it cannot
 *   have.
 * - `command_missing`: the store lacks an optional command, such as `inspect`, `resolve` or `step`. Nothing was sent to it.
 * - `store_failed`: the store failed, or did not reply in time. `inspect` changed nothing; of a `step`, the work was not called. Whether
 *   `resolve` changed the record is unknown: resolve it again, which changes nothing if it is already resolved.
 *
 * Transactions; for each of these codes, the call committed nothing:
 * - `context_missing`: `transaction`, `step` or `completeIn` received no context of a run; or `contextOf`, a request
 *   without one.
 * - `context_foreign`: the run of the context keeps its record in another store.
 * - `transactions_missing`: the store has no option `transactions`.
 * - `transaction_nested`: another transaction of the run is open.
 * - `transaction_committed`: another transaction of the run has committed.
 * - `transaction_late`: the response was begun, or the run ended, before the transaction was opened.
 * - `transaction_unanswered`: its work resolved without an answer. It was rolled back.
 * - `transaction_streamed`: its answer is not in one piece. It was rolled back.
 * - `transaction_waiting`: its work waited for its own response until the session ended. It was rolled back.
 * - `transaction_asynchronous`: its work returned a promise, but the store needs it to be synchronous. It was rolled
 *   back.
 * - `transaction_not_awaited`: a runner's function returned while its transaction was open. It was rolled back.
 * - `transaction_timed_out`: the database did not answer one of our statements within `storeTimeoutMs`, or the transaction was not over
 *   within `maxRunMs`. It was rolled back, or will be; only if its COMMIT was sent before, it is unknown, and the client was told
 *   to retry.
 * - `transaction_left_behind`: its work went on although the client had rejected it or called the work again. It was rolled back.
 * - `transaction_not_run`: the client reported a commit, but the work was not called or had failed.
 * - `operation_taken`: with `effects: 'in-transaction'`, another attempt holds the key or has completed it. It was rolled back, and
 *   whatever is answered, the client gets what the record says.
 * - `effects_in_transaction`: with `effects: 'in-transaction'`, `step`, `completeIn` or `mayHaveEffect` was called. Nothing was sent.
 *
 * Steps; in each case but `step_result_invalid` the work was not called:
 * - `step_repeated`: a step with this label is running or has succeeded in this run.
 * - `step_late`: the run has ended.
 * - `step_limit`: the operation has 100 steps.
 * - `step_in_transaction`: a transaction of the run is open.
 * - `step_result_invalid`: the result of a step is no JSON, or could not be encoded. The step was done, and stays begun.
 * - `step_not_kept`: an earlier attempt has done the step, and its result was not kept. The outcome stays unknown.
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
  | 'first_sent_failed'
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
  | 'transaction_waiting'
  | 'transaction_asynchronous'
  | 'transaction_not_awaited'
  | 'transaction_timed_out'
  | 'transaction_left_behind'
  | 'transaction_not_run'
  | 'operation_taken'
  | 'effects_in_transaction'
  | 'step_repeated'
  | 'step_late'
  | 'step_limit'
  | 'step_in_transaction'
  | 'step_result_invalid'
  | 'step_not_kept'

/**
 * Has `instanceof` recognise the errors of a class in all copies of the package, since one process may load an ES module and a CommonJS
 * copy, or two versions. A class that extends it recognises only its own. To be called once, behind the class.
 *
 * @example recognizeAcrossCopies(PostgresStoreError, 'PostgresStoreError')
 */
export function recognizeAcrossCopies(errors: abstract new (...args: never) => Error, name: string): void {
  const brand = Symbol.for(`once-per-key: ${name}`)
  Object.defineProperty(errors.prototype, brand, { value: true })
  Object.defineProperty(errors, Symbol.hasInstance, {
    value(this: unknown, value: unknown): boolean {
      if (this !== errors) return hasInstance.call(this as never, value)
      return typeof value === 'object' && value !== null && brand in value
    },
  })
}

const { [Symbol.hasInstance]: hasInstance } = Function.prototype

/**
 * Misuse by the application. The message says what happened, what was seen, what to do, and where to read more; it
 * never contains a key, a body or a secret.
 */
export class IdempotencyError extends Error {
  override readonly name = 'IdempotencyError'
  readonly code: IdempotencyErrorCode

  constructor(code: IdempotencyErrorCode, message: string, options?: { readonly cause?: unknown }) {
    // After a list, on its own line.
    super(
      `${message}${message.includes('\n') ? '\n' : ' '}${buildErrorPageHint(code)}`,
      options?.cause === undefined ? {} : options,
    )
    this.code = code
  }
}
recognizeAcrossCopies(IdempotencyError, 'IdempotencyError')

/** The kind of a value, for a message; never its content. */
export function describeKind(value: unknown): string {
  if (value === null || value === undefined) return String(value)
  if (typeof value !== 'object') return `a ${typeof value}`
  const prototype: object | null = Object.getPrototypeOf(value)
  if (Array.isArray(value) && Array.isArray(prototype)) return 'an array'
  if (prototype === null) return 'an object (without prototype)'
  // The prototype's, because a parsed body may have its own `constructor`; and not one that it has inherited.
  const { name } = (Object.hasOwn(prototype, 'constructor') && prototype.constructor) || {}
  return typeof name === 'string' ? `an object (${name})` : 'an object'
}

const MOST_CAUSE_CHARACTERS = 300

/** The message of what was thrown, to be appended after "failed". */
export function describeCause(cause: unknown): string {
  try {
    const { message } = (cause ?? {}) as { message?: unknown }
    if (typeof message === 'string' && message.trim() !== '') {
      const words = message.trim().replace(/\s+/g, ' ').replace(/\.$/, '')
      return words.length <= MOST_CAUSE_CHARACTERS ? `: ${words}` : `: ${words.slice(0, MOST_CAUSE_CHARACTERS)}…`
    }
    return cause instanceof Error ? '' : ` with ${describeKind(cause)}`
  } catch {
    return '' // Reading its properties threw.
  }
}

/**
 * An error as listeners receive it. JSON shows nothing of an Error, so loggers lose it. The copy has the same class, message, stack, code
 * and cause, and shows them in JSON. It is a copy because the error belongs to the application. Its other members can be read, but not be
 * enumerated, because clients attach requests and secrets to their errors. What is not an Error is returned as it is.
 */
export function toLoggableError(thrown: unknown): unknown {
  try {
    return isError(thrown) ? createLoggableCopy(thrown) : thrown
  } catch {
    return createLoggableCopy(new Error('An error was thrown whose properties cannot be read.'))
  }
}

function isError(value: unknown): value is Error {
  // Another realm, such as a `node:vm` context, has an Error of its own.
  return value instanceof Error || Object.prototype.toString.call(value) === '[object Error]'
}

function createLoggableCopy(error: Error): Error {
  const copy = new Error()
  for (const name of Reflect.ownKeys(error)) {
    const member = Object.getOwnPropertyDescriptor(error, name) as PropertyDescriptor
    if ('value' in member) member.writable = true // The error may be frozen.
    Object.defineProperty(copy, name, { ...member, enumerable: false, configurable: true })
  }
  const shown = toErrorJson(error)
  for (const name of ['name', 'message', 'stack', 'code'] as const) {
    if (shown[name] === undefined) continue
    const isEnumerable = name === 'code' // As Node has it in its own errors: serializers of loggers look for it so.
    Object.defineProperty(copy, name, {
      value: shown[name],
      enumerable: isEnumerable,
      configurable: true,
      writable: true,
    })
  }
  Object.defineProperty(copy, 'toJSON', { value: () => shown, configurable: true })
  return Object.setPrototypeOf(copy, Object.getPrototypeOf(error))
}

/** An error and its causes in JSON. */
interface ErrorJson {
  readonly name: string
  readonly message: string
  readonly code?: string | number
  readonly stack?: string
  readonly cause?: unknown
  readonly errors?: readonly unknown[]
}

function toErrorJson(error: Error, depth = 0): ErrorJson {
  const { name, message, stack, code, cause, errors } = error as Error & { code?: unknown; errors?: unknown }
  const toJson = (of: unknown) => (isError(of) ? toErrorJson(of, depth + 1) : isPlain(of) ? of : describeKind(of))
  const isDeeper = depth < MOST_CAUSES // A cause may be its own cause.
  return {
    name: String(name),
    message: String(message),
    ...((typeof code === 'string' || typeof code === 'number') && { code }),
    ...(typeof stack === 'string' && { stack }),
    ...(cause !== undefined && isDeeper && { cause: toJson(cause) }),
    ...(Array.isArray(errors) && isDeeper && { errors: errors.slice(0, MOST_CAUSES).map(toJson) }),
  }
}

const MOST_CAUSES = 5

function isPlain(value: unknown): boolean {
  return value === null || ['string', 'number', 'boolean'].includes(typeof value)
}

/** The address of `docs`, which the build takes from package.json: scripts/address.mjs. */
declare const DOCUMENTATION: string | undefined

/** Where messages point to: the folder in the package, as long as the project has no address. */
const DOCS = typeof DOCUMENTATION === 'string' ? DOCUMENTATION : 'once-per-key/docs'

export function buildErrorPageHint(code: string): string {
  return `See ${DOCS}/errors.md#${code}`
}

export interface CertainFailureOptions {
  /**
   * The status that error handlers, including Express's own, read from the error (`status`, `statusCode`): 400 to 499,
   * except 408 and 499.
   * @default 422: the request was understood and refused
   */
  readonly status?: number | undefined
  readonly cause?: unknown
}

/**
 * Throw this error if an operation failed and certainly had no effect, for example after a bank's clear "no". Its key
 * is released and a corrected request may follow, whatever status the application's error handling sends. The outcome
 * is still unknown after `mayHaveEffect()`, or if an earlier attempt's outcome is unknown.
 *
 * @example if (quote.expired) throw new CertainFailure('The quote has expired.', { status: 409 })
 */
export class CertainFailure extends Error {
  override readonly name = 'CertainFailure'
  readonly code = 'certain_failure'
  readonly status: number

  /** @throws IdempotencyError `arguments_invalid` for any other `status`. */
  constructor(message: string, options: CertainFailureOptions = {}) {
    const { status = 422, cause } = options
    super(message, cause === undefined ? undefined : { cause })
    // A number in place of the options has none; and Express answers with 500 where the status is text.
    const seen: unknown = typeof options === 'object' ? status : options
    if (seen !== status || !Number.isInteger(status) || !isRefusalStatus(status)) {
      const shown = typeof seen === 'string' ? JSON.stringify(seen) : String(seen)
      throw new IdempotencyError(
        'arguments_invalid',
        `The status of a CertainFailure is 400 to 499, except 408 and 499, such as { status: 409 }; seen: ${shown}.`,
      )
    }
    this.status = status
  }

  /** The same, under the name that Express 4 reads. */
  get statusCode(): number {
    return this.status
  }

  /** As http-errors says that clients may see the message: Nest 12 reads no status from an error without it, and Koa no message. */
  get expose(): boolean {
    return true
  }
}
recognizeAcrossCopies(CertainFailure, 'CertainFailure')

export function isCertainFailure(error: unknown): boolean {
  try {
    return error instanceof CertainFailure
  } catch {
    return false // An application may throw a proxy.
  }
}

/**
 * Whether the application refused: 400 to 499 except 408 and 499, which mean a timeout and a client that disconnected.
 */
export function isRefusalStatus(status: number): boolean {
  return status >= 400 && status <= 499 && status !== 408 && status !== 499
}
