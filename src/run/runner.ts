import {
  type Answer,
  type AsInput,
  type AsResult,
  type CommandReply,
  createOperationEngine,
  describeCause,
  type IdempotencyContext,
  IdempotencyError,
  type IdempotencyRecord,
  type JsonInputOf,
  type JsonOf,
  NOT_KEPT,
  safeListener,
  type UnknownOutcome,
} from '../core/index.js'

import {
  type AttemptedOperation,
  type KnownResult,
  type Operation,
  type OperationName,
  readName,
  readOperation,
} from './operation.js'
import { OperationRun, RefusedError } from './operation-run.js'
import { type ResultCodec, Results } from './results.js'
import {
  type AnyRunnerOptions,
  printByDefault,
  type RunnerEvent,
  type RunnerOptions,
  resolveRunnerOptions,
} from './runner-options.js'

export interface CodecOptions<Result, Encoded extends string | Uint8Array> {
  /**
   * Converts results into text or bytes, and back: two synchronous functions, `encode` and `decode`. `decode` must read
   * what earlier versions encoded, as long as records are kept.
   * @default JSON
   */
  readonly result: ResultCodec<Result, Encoded>
}

export interface RunnerControls<Result> {
  /** Resolves when no run is active and no completion is pending. Call it before closing the store's client. */
  idle(): Promise<void>
  /**
   * The current record of an operation; `null` if there is none. Changes nothing, neither its lease nor its retention.
   *
   * @throws IdempotencyError `arguments_invalid`; `command_missing`, for your own store without `inspect`;
   * `store_failed`. Nothing changed.
   */
  inspect(name: OperationName): Promise<IdempotencyRecord | null>
  /**
   * The operations of this runner whose outcome is unknown, as the store comes across them, a bounded step after the other. What
   * changes meanwhile may be left out, or be there twice.
   *
   * @example
   * for await (const { scope, key, record } of once.unknown()) console.log(scope, key, record.attempt)
   *
   * @throws IdempotencyError `command_missing`, for a store of one's own without `list`; `store_failed`. Nothing changed.
   */
  unknown(): AsyncIterable<Omit<UnknownOutcome, 'namespace'>>
  /**
   * Settles an unknown outcome by an operator's word. As `'failed'` the key is free: the next call runs, and is told
   * `previousOutcome: 'failed'`. As `completed` it never runs again. Find out first what became of the effect.
   *
   * If the result is not ok, nothing changed, and `record` shows why.
   *
   * @throws IdempotencyError `arguments_invalid`, `command_missing`: nothing changed. `store_failed`: it is unknown
   * whether the record was resolved, so inspect it again.
   */
  resolve(attempt: AttemptedOperation, as: KnownResult<Result>): Promise<CommandReply>
}

/**
 * Runs a function once for each operation, and resolves with its result as JSON. A repeat gets the same result without
 * running the function.
 *
 * @throws RefusedError if the record or the store does not let it run. What the function threw, unchanged: its outcome
 * is then unknown, unless it was a `CertainFailure` or `isCertainFailure` returned true. The reason of `signal`.
 * IdempotencyError for misuse: `arguments_invalid`, `scope_invalid`, `input_invalid` (nothing ran and nothing was
 * stored), and `decode_failed` (a stored result could not be read).
 */
export interface JsonRunner extends RunnerControls<unknown> {
  <Input, Result>(
    operation: Operation<Input & JsonInputOf<Input>>,
    work: (context: IdempotencyContext) => (Result & JsonOf<Result>) | Promise<Result & JsonOf<Result>>,
  ): Promise<Result>
  /** The same for type parameters of a function of your own around the runner. */
  <Input, Result>(
    operation: Operation<AsInput<Input>>,
    work: (context: IdempotencyContext) => AsResult<Result> | Promise<AsResult<Result>>,
  ): Promise<Result>
}

/** The same for results that are not JSON: `decode` reads what `encode` returned. */
export interface CodecRunner<Result> extends RunnerControls<Result> {
  <Input>(
    operation: Operation<AsInput<Input>>,
    work: (context: IdempotencyContext) => Result | Promise<Result>,
  ): Promise<Result>
}

/**
 * The function form, for operations that are not requests: queue jobs, messages, cron jobs, scripts. It uses the
 * middleware's engine and stores, and keeps the same promises.
 *
 * @example
 * const once = runner({ store, name: 'payouts' })
 * const payout = await once({ scope: merchantId, key: message.id, input: message.body }, async (context) =>
 *   bank.transfer(message.body, { idempotencyKey: context.deriveKey('transfer') }),
 * )
 *
 * @throws IdempotencyError `options_invalid`, which lists every mistake; nothing was built.
 */
export function runner(options: RunnerOptions & { readonly result?: undefined }): JsonRunner
export function runner<Result, Encoded extends string | Uint8Array>(
  options: RunnerOptions & CodecOptions<Result, Encoded>,
): CodecRunner<Result>
export function runner(given: AnyRunnerOptions): unknown {
  const options = resolveRunnerOptions(given)
  const { namespace } = options
  const emit = safeListener<RunnerEvent>(options.onEvent ?? printByDefault)
  const engine = createOperationEngine({ ...options.ofEngine, onEvent: emit })
  const results = new Results(options.result, options.maxAnswerBytes)
  const terms = { results, emit, isCertainFailure: createSafePredicate(options.isCertainFailure, emit) }

  async function runOnce(operation: Operation, work: (context: IdempotencyContext) => unknown): Promise<unknown> {
    const identity = readOperation(operation, work, namespace)
    const { signal } = operation
    signal?.throwIfAborted()
    const claimed = await engine.claim(identity, () => signal?.aborted === true)
    switch (claimed.action) {
      case 'execute':
        return new OperationRun(claimed.run, terms, signal).runFunction(work)
      case 'replay':
        return results.read(claimed.answer)
      case 'refuse':
        if (claimed.code === 'in_flight') signal?.throwIfAborted()
        throw new RefusedError(claimed.code, claimed.retryAfterMs, false)
    }
  }

  return Object.assign(runOnce, {
    idle: () => engine.idle(),
    inspect: async (name: OperationName) => engine.inspect(readName('inspect()', name, namespace)),
    unknown: () => filterByNamespace(namespace, engine.unknown()),
    resolve: async (attempt: AttemptedOperation, as: KnownResult<unknown>) =>
      engine.resolve(readName('resolve()', attempt, namespace), attempt.attempt, parseKnownResult(as, results)),
  })
}

async function* filterByNamespace(wanted: string, all: AsyncIterable<UnknownOutcome>) {
  for await (const { namespace, ...each } of all) if (namespace === wanted) yield each
}

/** @throws IdempotencyError `arguments_invalid` */
function parseKnownResult(as: KnownResult<unknown>, results: Results): Answer | null | 'rerun' {
  if (as === 'failed') return null
  if (as === 'rerun') return as
  if (as === 'completed') return NOT_KEPT
  let why = ": it is none of 'failed', 'completed', 'rerun' and { completed: the result }"
  try {
    if (typeof as === 'object' && as !== null && 'completed' in as) return results.encodeResult(as.completed).answer
  } catch (cause) {
    why = describeCause(cause)
  }
  throw new IdempotencyError(
    'arguments_invalid',
    `The outcome that was given to resolve() is invalid, and nothing changed${why}.`,
  )
}

function createSafePredicate(
  ask: (error: unknown) => unknown,
  emit: (event: RunnerEvent) => void,
): (error: unknown) => boolean {
  return (error) => {
    try {
      const verdict = ask(error)
      if (typeof verdict === 'boolean') return verdict
      if (verdict instanceof Promise) verdict.catch(() => {})
      throw new TypeError('The function must return true or false.')
    } catch (failure) {
      emit({ type: 'option_failed', option: 'isCertainFailure', error: failure })
      return false
    }
  }
}
