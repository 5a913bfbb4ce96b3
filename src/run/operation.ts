import {
  describeCause,
  describeKind,
  encodeStrictJson,
  findKeyFault,
  findMistakes,
  findScopeFault,
  fingerprintOf,
  IdempotencyError,
  type Identity,
  type OptionRule,
  type OptionTable,
  optionRules,
} from '../core/index.js'

/** Identifies an operation, together with the runner's `name`. */
export interface OperationName {
  /** Whose key it is: the account, or any fixed word if there is only one, such as `'cron'`. 1 to 255 characters. */
  readonly scope: string
  /** The same for each repeat, such as an order's id: 1 to 255 characters, no control characters. */
  readonly key: string
}

/** An operation to be done once. */
export interface Operation<Input = unknown> extends OperationName {
  /**
   * What must be the same in a repeat, as JSON: another input with the same key is refused. `null` if there is none.
   */
  readonly input: Input
  /**
   * When the operation was created, never a delivery's time. If that is longer ago than records are kept, and there is
   * no record, it is refused with `key_expired`. Needs a store with `inspect`.
   * @default unknown: after the retention a repeat runs anew
   */
  readonly firstSent?: Date | undefined
  /** Ends the wait for another attempt (`inFlightWaitMs`), within a second, with the signal's reason; never a run. */
  readonly signal?: AbortSignal | undefined
}

/** The attempt that an operator has inspected and resolves. */
export interface AttemptedOperation extends OperationName {
  readonly attempt: number
}

/**
 * How an attempt ended, as an operator found out. `'failed'`: it had no effect, and the key becomes free. `completed`:
 * it had its effect; repeats get the result or, without one, are refused with `answer_not_kept`. `'rerun'`: it is not
 * known, and the next call goes on with its recorded steps, even under `unknownOutcome: 'refuse'`.
 */
export type KnownResult<Result> = 'failed' | 'completed' | 'rerun' | { readonly completed: Result }

/**
 * Reads and checks an operation, and returns its identity.
 *
 * @throws IdempotencyError `arguments_invalid`, `scope_invalid`, `input_invalid`: nothing ran and nothing was stored.
 */
export function readOperation(given: Operation, work: unknown, namespace: string): Identity {
  const mistakes = findOperationMistakes(given, OPERATION)
  if (typeof work !== 'function') mistakes.push(`the second argument: expected a function; seen: ${describeKind(work)}`)
  assertNoMistakes('once()', mistakes)
  const { scope, key, input, firstSent } = given
  const fault = findScopeFault(scope)
  if (fault !== null) {
    throw new IdempotencyError(
      'scope_invalid',
      `The scope of once() is ${fault}. It must be the account whose key this is, as a string of 1 to 255 characters; if there ` +
        "is only one, any fixed word, such as 'cron'.",
    )
  }
  const identity = { namespace, scope, key, fingerprint: computeInputFingerprint(input) }
  return firstSent === undefined ? identity : { ...identity, firstSent }
}

/** @throws IdempotencyError `arguments_invalid`, which lists every mistake. */
export function readName(of: string, given: OperationName, namespace: string): Omit<Identity, 'fingerprint'> {
  const mistakes = findOperationMistakes(given, of === 'resolve()' ? ATTEMPT_NAME : NAME)
  const { scope, key } = given ?? {}
  const fault = findScopeFault(scope)
  if (fault !== null) mistakes.push(`scope: expected the scope that once() was given; seen: ${fault}`)
  assertNoMistakes(of, mistakes)
  return { namespace, scope, key }
}

/** @throws IdempotencyError `input_invalid` */
function computeInputFingerprint(input: unknown): string {
  try {
    if (input === undefined) throw new TypeError('it is undefined: pass null if there is none')
    // Members that are undefined would count in a fingerprint, but are lost when an input travels as JSON.
    return fingerprintOf(JSON.parse(encodeStrictJson(input)))
  } catch (cause) {
    throw new IdempotencyError(
      'input_invalid',
      `The input of once() cannot be compared${describeCause(cause)}. It must be JSON: strings, finite numbers, booleans, null, ` +
        'arrays and plain objects. Pass what makes two such operations the same, for example a date as text.',
      { cause },
    )
  }
}

const { anInteger, anything, toBulletList } = optionRules
const findSignalFault: OptionRule = (value) =>
  typeof (value as Partial<AbortSignal> | null)?.throwIfAborted === 'function' ? null : 'an AbortSignal'

/** An operation also names its record, so its members are allowed. */
const NAME = { scope: anything, key: anything, input: anything, firstSent: anything, signal: anything }
const ATTEMPT_NAME = { ...NAME, attempt: { rule: anInteger(0, 2 ** 52), isRequired: true } }
const OPERATION = { ...NAME, signal: findSignalFault }

/** Scope and key are checked separately, because messages must not quote them. */
function findOperationMistakes(given: unknown, table: OptionTable): string[] {
  if (typeof given !== 'object' || given === null) {
    return [`the first argument: expected { ${Object.keys(table).join(', ')} }; seen: ${describeKind(given)}`]
  }
  const { key } = given as Partial<OperationName>
  const mistakes = findMistakes(given, table)
  const keyIs = typeof key === 'string' ? findKeyFault(key) : `it is ${describeKind(key)}`
  if (keyIs !== null) mistakes.push(`key: expected 1 to 255 characters, but ${keyIs}; ${describeKeyWayOut(key)}`)
  return mistakes
}

function describeKeyWayOut(key: unknown): string {
  if (typeof key === 'string' && key !== '') return 'give its hash'
  return typeof key === 'number'
    ? 'give it as text, String(id)'
    : 'give what is the same in each repeat, such as the id of a message'
}

function assertNoMistakes(of: string, mistakes: readonly string[]): void {
  if (mistakes.length === 0) return
  throw new IdempotencyError(
    'arguments_invalid',
    `The arguments of ${of} are invalid, and nothing was done:${toBulletList(mistakes)}`,
  )
}
