import type { OperationEngine } from '../core/engine.js'
import type { RecordName } from '../core/identity.js'
import type { UnknownOutcome } from '../core/operator-calls.js'
import type { CommandReply, IdempotencyRecord } from '../core/record.js'
import { storedAnswer } from './answer.js'
import type { RequestRules } from './request-rules.js'
import { type AttemptName, type KnownOutcome, readName, readResolution } from './resolution.js'

/** What an operator can do with a record. */
export interface Operator {
  /**
   * The record of a key as it stands; `null`: there is none. Changes nothing, neither its lease nor its retention.
   *
   * Its outcome is unknown where it is in flight with a lease that lapsed (`leaseRemainingMs` at most 0), or failed and
   * uncertain. It may still hold an answer's bytes: show it only to those who may see them.
   *
   * @throws IdempotencyError `arguments_invalid`; `command_missing`, for a store of one's own without `inspect`;
   * `store_failed`. Nothing changed.
   */
  inspect(name: RecordName): Promise<IdempotencyRecord | null>

  /**
   * Everything that the store keeps whose outcome is unknown, as the store comes across it, a bounded step after the other: of
   * requests, and of events and other operations on the same store, which have a `namespace`. What changes meanwhile may be left
   * out, or be there twice.
   *
   * @example
   * for await (const { scope, key, record } of once.unknown()) console.log(scope, key, record.attempt)
   *
   * @throws IdempotencyError `command_missing`, for a store of one's own without `list`; `store_failed`. Nothing changed.
   */
  unknown(): AsyncIterable<UnknownOutcome>

  /**
   * Settles an unknown outcome by the operator's word. As `'failed'` the key is free: the next request runs, and is told
   * `previousOutcome: 'failed'`. As `completed` it never runs again: retries are given the answer, for at least
   * `retentionMs`. Either way the attempt that was lost changes nothing any more, should it still wake up: its client gets
   * what the record says.
   *
   * Find out first what became of the effect, and that nothing of the attempt still runs. A `completion_pending` event
   * means that its client was sent a success.
   *
   * Not ok: nothing changed, and `record` says why: its outcome is known, its lease is live, there is none (`null`), or a
   * later attempt than the one that was looked at has been made. So of two operators one is told that the other was first.
   *
   * @example
   * const record = await once.inspect({ scope: 'acme', key: 'order-1001' })
   * await once.resolve({ scope: 'acme', key: 'order-1001', attempt: record.attempt }, 'failed')
   *
   * @throws IdempotencyError `arguments_invalid`, which lists every mistake; `command_missing`, for a store of one's own
   * without `resolve`: nothing changed. `store_failed`: it is not known whether it was resolved, so inspect it again.
   */
  resolve(name: AttemptName, as: KnownOutcome): Promise<CommandReply>
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
      return engine.resolve(name, attempt, answer && storedAnswer(answer, rules.functions.keepHeader))
    },
  }
}
