import { type KeepHeader, withKeptHeaders } from './answer.js'
import { ask, called } from './commands.js'
import { IdempotencyError } from './errors.js'
import type { Emit, StoreFailure } from './events.js'
import { storageKey } from './key.js'
import type { ResolvedOptions } from './options.js'
import type { Done, IdempotencyRecord } from './record.js'
import { type AttemptName, type KnownOutcome, type RecordName, readName, readResolution } from './resolution.js'
import type { Store } from './store.js'
import { newToken } from './token.js'

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
  resolve(name: AttemptName, as: KnownOutcome): Promise<Done>
}

export function operatorOn<Req>(options: ResolvedOptions<Req>, keepHeader: KeepHeader, emit: Emit): Operator {
  const { store, retentionMs, storeTimeoutMs, maxAnswerBytes } = options

  function commandOf<Name extends 'inspect' | 'resolve'>(name: Name): NonNullable<Store[Name]> {
    const command = store[name]
    if (command === undefined) throw commandMissing(name)
    return command.bind(store) as NonNullable<Store[Name]>
  }

  async function answerTo<Reply>(
    command: 'inspect' | 'resolve',
    name: RecordName,
    send: () => Promise<Reply>,
  ): Promise<Reply> {
    let failure: StoreFailure | undefined
    const reply = await ask(command, name, called(send), storeTimeoutMs, (event) => {
      if (event.type === 'store_failed') failure = event.error
      emit(event)
    })
    if (reply === null) throw storeFailed(command, failure)
    return reply
  }

  return {
    async inspect(given) {
      const name = readName(given)
      const inspect = commandOf('inspect')
      const { record } = await answerTo('inspect', name, async () => ({ record: await inspect(storageKey(name)) }))
      return record
    },

    async resolve(given, as) {
      const { name, attempt, answer } = readResolution(given, as, maxAnswerBytes)
      const resolve = commandOf('resolve')
      const { scope, key } = name
      const kept = answer && withKeptHeaders(answer, keepHeader)
      const resolution = { token: newToken(), attempt, answer: kept, retentionMs }
      const done = await answerTo('resolve', name, () => resolve(storageKey(name), resolution))
      if (done.ok) emit({ type: 'resolved', scope, key, attempt, as: answer === null ? 'failed' : 'completed' })
      return done
    },
  }
}

function commandMissing(command: string): IdempotencyError {
  return new IdempotencyError(
    'command_missing',
    `The store has no \`${command}\`, which is optional in a store of one's own. Add it: what it does to a record is ` +
      `\`machine.${command}\`, exported by once-per-key/core.`,
  )
}

function storeFailed(command: 'inspect' | 'resolve', cause: StoreFailure | undefined): IdempotencyError {
  const what = { inspect: 'Nothing changed.', resolve: 'Whether the record was resolved, is not known: inspect it.' }
  return new IdempotencyError('store_failed', `The store failed: ${cause?.message} ${what[command]}`, { cause })
}
