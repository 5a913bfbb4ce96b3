import { Buffer } from 'node:buffer'
import type { OperationEngine } from '../../core/engine/engine.js'
import { describeKind, IdempotencyError } from '../../core/errors.js'
import type { UnknownOutcome } from '../../core/operator/operator-calls.js'
import { findKeyFault, findNamespaceFault, findScopeFault, type RecordName } from '../../core/record/identity.js'
import {
  type Answer,
  type CommandReply,
  type GivenAnswer,
  type IdempotencyRecord,
  NOT_KEPT,
} from '../../core/record/record.js'
import { anInteger, anything, findMistakes, type OptionTable, type Rule, toBulletList } from '../../core/validation.js'
import { isSuccessStatus, toStoredAnswer } from '../answer/answer.js'
import { isHeaderName } from '../options/option-rules.js'
import type { RequestRules } from './option-functions.js'

/** Commands with which an operator inspects and settles records. */
export interface Operator {
  /**
   * The current record of a key; `null` if there is none. Changes nothing, neither its lease nor its retention.
   *
   * The outcome is unknown if the record is in flight with a lapsed lease (`leaseRemainingMs` at most 0), or failed and
   * uncertain. The record may contain an answer's bytes: show it only to people who may see them.
   *
   * @throws IdempotencyError `arguments_invalid`; `command_missing`, for your own store without `inspect`;
   * `store_failed`. Nothing changed.
   */
  inspect(name: RecordName): Promise<IdempotencyRecord | null>

  /**
   * All records in the store with an unknown outcome, in the store's order, read in bounded steps: of requests, and of
   * events and other operations in the same store, which have a `namespace`. Records that change meanwhile may be
   * missing or appear twice.
   *
   * @example
   * for await (const { scope, key, record } of once.unknown()) console.log(scope, key, record.attempt)
   *
   * @throws IdempotencyError `command_missing`, for your own store without `list`; `store_failed`. Nothing changed.
   */
  unknown(): AsyncIterable<UnknownOutcome>

  /**
   * Settles an unknown outcome by hand. With `'failed'` the key is free: the next request runs with
   * `previousOutcome: 'failed'`. With `completed` it never runs again: retries get the answer, for at least
   * `retentionMs`. In both cases the lost attempt can no longer change the record, even if it continues: its client gets
   * what the record says. `'rerun'` is for an outcome that stays unknown: the next request goes on with the recorded steps,
   * even under `unknownOutcome: 'refuse'`.
   *
   * First find out whether the operation had its effect, and make sure that nothing of the attempt is still running. A
   * `completion_pending` event means that its client was sent a success.
   *
   * If the result is not ok, nothing changed, and `record` shows why: the outcome is known, the lease is live, there is
   * no record (`null`), or there has been a later attempt than the inspected one. So if two operators resolve the same
   * key, the second is told.
   *
   * @example
   * const record = await once.inspect({ scope: 'acme', key: 'order-1001' })
   * await once.resolve({ scope: 'acme', key: 'order-1001', attempt: record.attempt }, 'failed')
   *
   * @throws IdempotencyError `arguments_invalid`, which lists every mistake; `command_missing`, for your own store
   * without `resolve`: nothing changed. `store_failed`: it is unknown whether the record was resolved, so inspect it
   * again.
   */
  resolve(name: AttemptName, as: KnownOutcome): Promise<CommandReply>
}

/** The commands of an operator, and the wait of a shutdown. */
export interface Controls extends Operator {
  /**
   * Resolves when no run is active and no completion is pending, after their last events. Call it after the server was closed, and
   * before closing the store's client.
   */
  idle(): Promise<void>
}

/** An operator's commands on the records of requests. */
export function createOperator<Req>(
  engine: Pick<OperationEngine, 'inspect' | 'resolve' | 'unknown'>,
  rules: RequestRules<Req>,
): Operator {
  return {
    inspect: async (given) => engine.inspect(readName(given)),
    unknown: () => engine.unknown(),
    resolve: async (given, as) => {
      const { name, attempt, answer } = readResolution(given, as, rules.options.maxAnswerBytes)
      const isAnswer = answer !== null && answer !== 'rerun'
      return engine.resolve(name, attempt, isAnswer ? toStoredAnswer(answer, rules.functions.keepHeader) : answer)
    },
  }
}

/** What a binding offers of its engine besides protecting requests: for operators, and for shutdown. */
export function pickControls(engine: Controls): Controls {
  return {
    idle: () => engine.idle(),
    inspect: (name) => engine.inspect(name),
    unknown: () => engine.unknown(),
    resolve: (name, as) => engine.resolve(name, as),
  }
}

/** The attempt that an operator has inspected and resolves. */
export interface AttemptName extends RecordName {
  /** As `inspect` showed it: a later attempt must not be resolved by what was seen of this one. */
  readonly attempt: number
}

/**
 * How an attempt ended, as an operator found out. `'failed'`: it had no effect, and the key becomes free. `completed`:
 * it had its effect; retries get the given answer or, without one, 409 `answer_not_kept`. `'rerun'`: it is not known, and
 * the next request goes on with its recorded steps, even under `unknownOutcome: 'refuse'`; told `'unknown'`.
 */
export type KnownOutcome = 'failed' | 'completed' | 'rerun' | { readonly completed: GivenAnswer }

/**
 * Reads and checks the name of a record.
 *
 * @throws IdempotencyError `arguments_invalid`, which lists every mistake.
 */
function readName(given: RecordName): RecordName {
  assertNoMistakes('inspect()', findNameMistakes(given, NAME))
  return pickRecordName(given)
}

/** The name, the attempt, and the answer to keep; `null`: it failed; `'rerun'`: it goes on. */
function readResolution(
  given: AttemptName,
  as: KnownOutcome,
  maxAnswerBytes: number,
): { readonly name: RecordName; readonly attempt: number; readonly answer: Answer | null | 'rerun' } {
  const bytes = encodeOutcomeBody(as)
  assertNoMistakes('resolve()', [
    ...findNameMistakes(given, ATTEMPT_NAME),
    ...findOutcomeMistakes(as, bytes, maxAnswerBytes),
  ])
  return { name: pickRecordName(given), attempt: given.attempt, answer: toOutcomeAnswer(as, bytes) }
}

/**
 * Reads and checks an answer that was given by hand, in a transaction.
 *
 * @throws IdempotencyError `arguments_invalid`, which lists every mistake.
 */
export function readAnswer(given: unknown, maxAnswerBytes: number): Answer {
  const as = { completed: given as GivenAnswer }
  const bytes = encodeOutcomeBody(as)
  assertNoMistakes('completeIn()', findOutcomeMistakes(as, bytes, maxAnswerBytes))
  return toOutcomeAnswer(as, bytes) as Answer
}

function assertNoMistakes(of: string, mistakes: readonly string[]): void {
  if (mistakes.length === 0) return
  throw new IdempotencyError(
    'arguments_invalid',
    `The arguments of ${of} are invalid, and nothing was sent:${toBulletList(mistakes)}`,
  )
}

function pickRecordName({ scope, key, namespace, path }: RecordName): RecordName {
  return { scope, key, ...(namespace !== undefined && { namespace }), ...(path !== undefined && { path }) }
}

const findNamespaceMistake: Rule = (value) =>
  findNamespaceFault(value) === null ? null : "a word without a colon, such as 'webhook'"

const findPathMistake: Rule = (value) =>
  typeof value === 'string' && value.startsWith('/') && value.isWellFormed()
    ? null
    : "the path that the key belongs to, such as '/checkout_sessions'"

const NAME = {
  scope: anything,
  key: anything,
  namespace: findNamespaceMistake,
  path: findPathMistake,
  attempt: anInteger(0, 2 ** 52),
}
const ATTEMPT_NAME = { ...NAME, attempt: { rule: NAME.attempt, isRequired: true } }

/** Scope and key are checked separately, because messages must not quote them. */
function findNameMistakes(given: unknown, table: OptionTable): string[] {
  if (typeof given !== 'object' || given === null)
    return [`the record: expected { scope, key }; seen: ${describeKind(given)}`]
  const { scope, key } = given as Partial<AttemptName>
  const mistakes = findMistakes(given, table)
  const scopeIs = findScopeFault(scope)
  if (scopeIs !== null) mistakes.push(`scope: expected what the option \`scope\` returns; seen: ${scopeIs}`)
  const keyIs = typeof key === 'string' ? findKeyFault(key) : `it is ${describeKind(key)}`
  if (keyIs !== null) mistakes.push(`key: expected an idempotency key, but ${keyIs}`)
  return mistakes
}

const findStatusMistake: Rule = (value) =>
  Number.isInteger(value) && isSuccessStatus(value as number)
    ? null
    : "a success (200 to 399 except 307 and 308); resolve an attempt without effect as 'failed'"

const ANSWER = { status: { rule: findStatusMistake, isRequired: true }, body: anything, headers: findHeadersMistake }

function findOutcomeMistakes(as: unknown, bytes: Uint8Array | null, maxAnswerBytes: number): string[] {
  if (as === 'failed' || as === 'completed' || as === 'rerun') return []
  const given = findGivenAnswer(as)
  if (given === null)
    return [`the outcome: expected 'failed', 'completed', 'rerun' or { completed: { status, body, headers } }`]
  const mistakes = findMistakes(given, ANSWER)
  if (bytes === null) {
    mistakes.push("body: expected a string, bytes, or an object as JSON; if it is unknown, resolve as 'completed'")
  } else if (bytes.byteLength > maxAnswerBytes) {
    mistakes.push(`body: expected at most ${maxAnswerBytes} bytes (maxAnswerBytes); seen: ${bytes.byteLength}`)
  }
  return mistakes
}

function findGivenAnswer(as: unknown): GivenAnswer | null {
  const completed = typeof as === 'object' && as !== null ? (as as { completed?: unknown }).completed : undefined
  return typeof completed === 'object' && completed !== null ? (completed as GivenAnswer) : null
}

/** RFC 9110 §5.5, "field-value", with the non-ASCII bytes that Node sends as Latin-1. */
const HEADER_VALUE = /^[\t\x20-\x7e\x80-\xff]*$/

function findHeadersMistake(value: unknown): string | null {
  const right =
    typeof value === 'object' &&
    value !== null &&
    Object.entries(value).every(
      ([name, values]) =>
        isHeaderName(name) &&
        [values].flat().every((one: unknown) => typeof one === 'string' && HEADER_VALUE.test(one)),
    )
  return right ? null : "an object of headers, such as { Location: '/payouts/1' }"
}

/** `null` if there is no answer, or no body that can be sent. */
function encodeOutcomeBody(as: unknown): Uint8Array | null {
  const { body } = findGivenAnswer(as) ?? {}
  if (body === undefined || typeof body === 'string') return Buffer.from(body ?? '')
  if (body instanceof Uint8Array) return body
  if (typeof body !== 'object' || body === null) return null
  try {
    const json: string | undefined = JSON.stringify(body)
    return json === undefined ? null : Buffer.from(json)
  } catch {
    return null
  }
}

function toOutcomeAnswer(as: KnownOutcome, bytes: Uint8Array | null): Answer | null | 'rerun' {
  if (as === 'failed') return null
  if (as === 'rerun') return as
  if (as === 'completed') return NOT_KEPT
  const { status, body, headers = {} } = as.completed
  const pairs = Object.entries(headers).flatMap(([name, values]) =>
    [values].flat().map((value) => [name, value] as const),
  )
  const counted = pairs.filter(([name]) => name.toLowerCase() !== 'content-length')
  const hasType = counted.some(([name]) => name.toLowerCase() === 'content-type')
  const isJson = typeof body === 'object' && !(body instanceof Uint8Array)
  return { status, statusMessage: '', headers: isJson && !hasType ? [JSON_TYPE, ...counted] : counted, body: bytes }
}

const JSON_TYPE = ['Content-Type', 'application/json; charset=utf-8'] as const
