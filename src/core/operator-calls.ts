import type { CoreParts } from './core-parts.js'
import { IdempotencyError } from './errors.js'
import type { Emit, StoreFailure } from './events.js'
import { type RecordName, storageKey } from './identity.js'
import type { MaybePromise } from './maybe-promise.js'
import type { Answer, CommandReply, IdempotencyRecord } from './record.js'
import type { Store } from './store.js'
import { newToken } from './token.js'
import { isCommandTraced, traceCommand } from './trace.js'

/** The record as it stands; `null`: there is none. */
export async function inspectRecord(name: RecordName, core: CoreParts): Promise<IdempotencyRecord | null> {
  const inspect = commandOf(core.options.store, 'inspect')
  const recordKey = storageKey(name)
  const { record } = await ask('inspect', name, async () => ({ record: await inspect(recordKey) }), core)
  return record
}

/** Settles an unknown outcome: with an answer, or, `null`, as certainly failed. */
export async function resolveRecord(
  name: RecordName,
  attempt: number,
  answer: Answer | null,
  core: CoreParts,
): Promise<CommandReply> {
  const resolve = commandOf(core.options.store, 'resolve')
  const { scope, key } = name
  const resolution = { token: newToken(), attempt, answer, retentionMs: core.options.retentionMs }
  const reply = await ask('resolve', name, () => resolve(storageKey(name), resolution), core)
  if (reply.ok) core.emit({ type: 'resolved', scope, key, attempt, as: answer === null ? 'failed' : 'completed' })
  return reply
}

function commandOf<Name extends 'inspect' | 'resolve'>(store: Store, name: Name): NonNullable<Store[Name]> {
  const command = store[name]
  if (command === undefined) throw commandMissing(name)
  return command.bind(store) as NonNullable<Store[Name]>
}

async function ask<Reply>(
  command: 'inspect' | 'resolve',
  name: RecordName,
  send: () => MaybePromise<Reply>,
  { calls, emit }: CoreParts,
): Promise<Reply> {
  let failure: StoreFailure | undefined
  const heard: Emit = (event) => {
    if (event.type === 'store_failed') failure = event.error
    emit(event)
  }
  const about = { identity: name }
  const call = isCommandTraced()
    ? traceCommand(command, name, {}, heard, (traced) => calls.ask(command, about, send, traced))
    : calls.ask(command, about, send, heard)
  const reply = await call.reply
  if (reply === null) throw storeFailed(command, failure)
  return reply
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
