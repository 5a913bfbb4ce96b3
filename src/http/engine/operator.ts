import type { OperationEngine } from '../../core/engine/engine.js'
import type { UnknownOutcome } from '../../core/engine/operator-calls.js'
import type { RecordName } from '../../core/record/identity.js'
import type { CommandReply, IdempotencyRecord } from '../../core/record/record.js'
import { storedAnswer } from '../answer/answer.js'
import type { RequestRules } from './option-functions.js'
import { type AttemptName, type KnownOutcome, readName, readResolution } from './resolution.js'

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
  /** Resolves when no run is active and no completion is pending. */
  idle(): Promise<void>
}

/** An operator's commands on the records of requests. */
export function operatorOn<Req>(
  engine: Pick<OperationEngine, 'inspect' | 'resolve' | 'unknown'>,
  rules: RequestRules<Req>,
): Operator {
  return {
    async inspect(given) {
      return engine.inspect(readName(given))
    },

    unknown() {
      return engine.unknown()
    },

    async resolve(given, as) {
      const { name, attempt, answer } = readResolution(given, as, rules.options.maxAnswerBytes)
      return engine.resolve(
        name,
        attempt,
        answer === null || answer === 'rerun' ? answer : storedAnswer(answer, rules.functions.keepHeader),
      )
    },
  }
}

/** What a binding offers of its engine besides protecting requests: for operators, and for shutdown. */
export function controlsOf(engine: Controls): Controls {
  return {
    idle: () => engine.idle(),
    inspect: (name) => engine.inspect(name),
    unknown: () => engine.unknown(),
    resolve: (name, as) => engine.resolve(name, as),
  }
}
