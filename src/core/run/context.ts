import { IdempotencyError } from '../errors.js'
import type { AsResult, JsonOf } from '../json.js'
import { deriveKey, type Identity } from '../record/identity.js'
import type { PreviousOutcome } from '../record/record.js'
import type { StepInHand, StepOptions } from './step.js'

/** What a handler receives about its run. */
export interface IdempotencyContext {
  readonly key: string
  readonly scope: string
  /** 1, 2, 3 … while the record lives; 0 for a run that no claim protects (`storeFailure: 'runUnprotected'`). */
  readonly attempt: number
  /**
   * How earlier attempts ended. `'unknown'`: one died, stalled, or failed and may have had its effect; check whether
   * the effect took place before repeating it.
   */
  readonly previousOutcome: PreviousOutcome
  /**
   * Aborts when the lease is lost, or when the run has ended as a failure, for example because a time limit responded
   * instead of the handler. Another attempt may be running, so stop.
   */
  readonly signal: AbortSignal
  /** Call it before the irrevocable step: any failure after it leaves the outcome unknown instead of failed. */
  readonly mayHaveEffect: () => void
  /**
   * A stable key (a UUID, RFC 9562 version 8) for a call to another service. It is the same for every attempt with the
   * same scope, key, fingerprint and label, so the other service can remove duplicates that a lease cannot prevent. It is
   * the same after `retentionMs` too, and after a record was lost, because it is then the last protection.
   *
   * @example await bank.transfer(order, { idempotencyKey: req.idempotency.deriveKey('bank transfer') })
   * @throws IdempotencyError `label_invalid` for an empty label; nothing changed.
   */
  readonly deriveKey: (label: string) => string
  /**
   * A part of the operation whose result is recorded by itself. If an earlier attempt has recorded one, resolves with it and
   * does not call `work`; else calls it, records what it returned, and resolves with that, as JSON.
   *
   * `label` identifies the step: 1 to 100 characters, no control characters, one for each step of the operation (in a
   * loop, it carries the index). A failure of the run after a step has begun leaves the outcome unknown, unless its work
   * threw a `CertainFailure`. Results above `maxStepBytes` are not kept: a later attempt rejects with `step_not_kept`.
   *
   * @example
   * const charge = await run.step('charge', ({ key, signal }) => bank.charge(order, { idempotencyKey: key, signal }))
   *
   * @throws IdempotencyError for misuse (`label_invalid`, `step_repeated`, `step_late`, `step_limit`,
   * `step_in_transaction`, `command_missing`), `store_failed`, `lease_lost` and `step_not_kept`: `work` was not called.
   * `step_result_invalid`: it was, and the step counts as begun. What `work` throws, unchanged.
   */
  readonly step: StepOf
}

/** `context.step`: the result is JSON, or `options.result` converts it. */
export interface StepOf {
  <Result>(
    label: string,
    work: (step: StepInHand) => Result | Promise<Result>,
    options: StepOptions<NoInfer<Result>>,
  ): Promise<Result>
  <Result>(
    label: string,
    work: (step: StepInHand) => (Result & JsonOf<Result>) | Promise<Result & JsonOf<Result>>,
  ): Promise<Result>
  /** The same for type parameters. */
  <Result>(label: string, work: (step: StepInHand) => AsResult<Result> | Promise<AsResult<Result>>): Promise<Result>
}

interface ContextRun {
  readonly identity: Identity
  readonly attempt: number
  readonly previousOutcome: PreviousOutcome
  readonly signal: AbortSignal
  mayHaveEffect(): void
  runStep(label: string, work: (step: StepInHand) => unknown, options: unknown): Promise<unknown>
}

/**
 * What a handler receives about its run; nothing in it can end the run. Getters are shared, and functions are created
 * on access, so `const { deriveKey } = req.idempotency` works. Functions stored in each context would keep the run in
 * V8's old space.
 */
export class HandlerContext implements IdempotencyContext {
  readonly key: string
  readonly scope: string
  readonly attempt: number
  readonly previousOutcome: PreviousOutcome
  declare readonly signal: AbortSignal
  /** Not a private field, so that it works through a Proxy and on a copy too. */
  declare readonly [RUN]: ContextRun

  constructor(run: ContextRun) {
    this.key = run.identity.key
    this.scope = run.identity.scope
    this.attempt = run.attempt
    this.previousOutcome = run.previousOutcome
    Object.defineProperty(this, RUN, { value: run })
    Object.defineProperty(this, 'signal', SIGNAL)
  }

  get mayHaveEffect(): () => void {
    const run = this[RUN]
    return () => run.mayHaveEffect()
  }

  get step(): StepOf {
    const run = this[RUN]
    return ((label: string, work: (step: StepInHand) => unknown, options: unknown) =>
      run.runStep(label, work, options)) as StepOf
  }

  get deriveKey(): (label: string) => string {
    const { identity } = this[RUN]
    return (label) => deriveKey(identity, label)
  }
}

/**
 * The property with a context's run: a registered symbol, so that an ES module and a CommonJS copy of the library share
 * it.
 */
export const RUN = Symbol.for('once-per-key: run')

/**
 * Gives a binding's own context the run of the context that it was made from: stores accept either for a transaction.
 */
export function carryRun<Context extends object>(from: IdempotencyContext, to: Context): Context {
  return Object.defineProperty(to, RUN, { value: (from as HandlerContext)[RUN] })
}

/** The part of a context that a store needs: `req.idempotency`, or what handlers of events and jobs receive. */
export type ActingContext = Pick<IdempotencyContext, 'attempt' | 'previousOutcome' | 'signal'>

/** One pair of accessors for all contexts: V8 keeps such a pair in its old space. */
const SIGNAL = {
  get(this: HandlerContext) {
    return this[RUN].signal
  },
  enumerable: true,
  configurable: true,
}

/**
 * The context of a run that a route always has: `req.idempotency`, without a check for `undefined`. For routes whose
 * middleware has `required: true`, since a request without a key has no context.
 *
 * @example
 * app.post('/payouts', once, async (req, res) => {
 *   const { deriveKey } = contextOf(req)
 *
 * @throws IdempotencyError `context_missing`: the request has none. Nothing changed.
 */
export function contextOf(request: RequestWithContext | NodeRequest): IdempotencyContext {
  const { idempotency } = request as RequestWithContext
  if (idempotency !== undefined) return idempotency
  throw new IdempotencyError(
    'context_missing',
    'The request has no context of a run. Either it came without a key, which `required: true` refuses, or the route is not behind ' +
      'the middleware: mount it before the handler. A method that `methods` does not name, and a request that `skip` names, have none.',
  )
}

/** A request of a framework that the package's types add to. */
type RequestWithContext = {
  readonly idempotency?: IdempotencyContext | undefined
}

/** One of plain `node:http`, or of a router on it such as polka. */
type NodeRequest = {
  readonly rawHeaders: readonly string[]
}
