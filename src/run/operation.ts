import {
  fingerprintOf,
  IdempotencyError,
  type Identity,
  inItsWords,
  keyFault,
  kindOf,
  mistakesIn,
  type OptionRule,
  optionRules,
  scopeFault,
} from '../core/index.js'
import { strictJson } from './json.js'

/** Which operation it is: a runner's `name`, a scope and a key make one. */
export interface OperationName {
  /**
   * Whose key it is: the account, or a word of your own where there is but one, such as `'cron'`. 1 to 255 characters. Two
   * scopes never meet.
   */
  readonly scope: string
  /** The same for each repeat, such as a message's id: 1 to 255 characters, no control characters. */
  readonly key: string
}

/** What is to be done once. */
export interface Operation<Input = unknown> extends OperationName {
  /** What must be the same in a repeat, as JSON: another input under the key is refused. `null` where there is none. */
  readonly input: Input
  /**
   * Ends the waiting for another attempt (`inFlightWaitMs`), within a second, with the signal's reason; never a run. One that
   * is aborted before it starts claims nothing.
   */
  readonly signal?: AbortSignal | undefined
}

/** Which attempt an operator has looked at, and judges: as `inspect` showed it. */
export interface AttemptedOperation extends OperationName {
  readonly attempt: number
}

/**
 * What became of an attempt, as an operator found out. `'failed'`: it had no effect, and the key is free. `completed`: it had
 * its effect; a repeat is given the result, and without one it is refused with `answer_not_kept`.
 */
export type KnownResult<Result> = 'failed' | 'completed' | { readonly completed: Result }

/**
 * Reads whose operation it is, and what makes it the same.
 *
 * @throws IdempotencyError `arguments_invalid`, `scope_invalid`, `input_invalid`: nothing ran and nothing was stored.
 */
export function readOperation(given: Operation, work: unknown, namespace: string): Identity {
  const mistakes = mistakesInName(given, OPERATION_RULES)
  if (typeof work !== 'function') mistakes.push(`the second argument: expected a function; seen: ${kindOf(work)}`)
  refuse('once()', mistakes)
  const { scope, key, input } = given
  const fault = scopeFault(scope)
  if (fault !== null) {
    throw new IdempotencyError(
      'scope_invalid',
      `The scope of once() is ${fault}. It must name the account whose key this is, as a string of 1 to 255 characters; where ` +
        "there is but one, a word of your own, such as 'cron'.",
    )
  }
  return { namespace, scope, key, fingerprint: inputFingerprint(input) }
}

/** @throws IdempotencyError `arguments_invalid`, which lists every mistake. */
export function readName(of: string, given: OperationName, namespace: string): Omit<Identity, 'fingerprint'> {
  const mistakes = mistakesInName(given, of === 'resolve()' ? ATTEMPT_RULES : NAME_RULES)
  const { scope, key } = given ?? {}
  const fault = scopeFault(scope)
  if (fault !== null) mistakes.push(`scope: expected the scope that once() was given; seen: ${fault}`)
  refuse(of, mistakes)
  return { namespace, scope, key }
}

/** @throws IdempotencyError `input_invalid` */
function inputFingerprint(input: unknown): string {
  try {
    if (input === undefined) throw new TypeError('it is undefined: give null where there is none')
    // Members that are undefined count in a fingerprint, but get lost wherever an input travels as JSON.
    return fingerprintOf(JSON.parse(strictJson(input)))
  } catch (cause) {
    throw new IdempotencyError(
      'input_invalid',
      `The input of once() cannot be compared${inItsWords(cause)}. It must be JSON: strings, finite numbers, booleans, null, ` +
        'arrays and plain objects. Give what makes two such operations the same, such as a date as its text.',
      { cause },
    )
  }
}

const anything: OptionRule = () => null
const aSignal: OptionRule = (value) =>
  typeof (value as Partial<AbortSignal> | null)?.aborted === 'boolean' ? null : 'an AbortSignal'

/** The operation itself names its record as well. */
const NAME_RULES = { scope: anything, key: anything, input: anything, signal: anything }
const ATTEMPT_RULES = { ...NAME_RULES, attempt: optionRules.anInteger(0, 2 ** 52) }
const OPERATION_RULES = { ...NAME_RULES, signal: aSignal }

/** Scope and key are judged apart: a message quotes neither. */
function mistakesInName(given: unknown, rules: Readonly<Record<string, OptionRule>>): string[] {
  if (typeof given !== 'object' || given === null) {
    return [`the first argument: expected { ${Object.keys(rules).join(', ')} }; seen: ${kindOf(given)}`]
  }
  const { key } = given as Partial<OperationName>
  const mistakes = mistakesIn(given, given, rules, ['attempt'])
  const keyIs = typeof key === 'string' ? keyFault(key) : `it is ${kindOf(key)}`
  if (keyIs !== null) mistakes.push(`key: expected 1 to 255 characters, but ${keyIs}; give a longer one as its hash`)
  return mistakes
}

function refuse(of: string, mistakes: readonly string[]): void {
  if (mistakes.length === 0) return
  const lines = mistakes.map((mistake) => `\n  - ${mistake}`).join('')
  throw new IdempotencyError('arguments_invalid', `The arguments of ${of} are invalid, and nothing was done:${lines}`)
}
