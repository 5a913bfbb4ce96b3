import { IdempotencyError } from '../errors.js'
import type { Emit, OperatorCommandName as OperatorCommand, StoreFailure } from '../events/events.js'
import type { MaybePromise } from '../maybe-promise.js'
import { commandMissing } from '../misuse.js'
import { type RecordName, recordName, storageKey, storageScope } from '../record/identity.js'
import type { Answer, CommandReply, IdempotencyRecord, ListedRecord, ListedRecords } from '../record/record.js'
import { isOpen } from '../record/shown.js'
import { newToken } from '../record/token.js'
import type { CoreParts } from '../run/operation.js'
import type { Store } from '../store.js'

/** The current record; `null` if there is none. */
export async function inspectRecord(name: RecordName, core: CoreParts): Promise<IdempotencyRecord | null> {
  const recordKey = storageKey(name)
  const { record } = await ask('inspect', name, async (inspect) => ({ record: await inspect(recordKey) }), core)
  return record
}

/** A record whose outcome is unknown, and what is left of the time for which it is kept, in milliseconds. */
export interface UnknownOutcome extends RecordName {
  readonly record: IdempotencyRecord
  /** Of these, the one with the least is the oldest, where all are kept equally long. */
  readonly retentionRemainingMs: number
}

/** All that the store keeps whose outcome is unknown, a bounded step after the other. */
export async function* unknownOutcomes(core: CoreParts): AsyncGenerator<UnknownOutcome, void, undefined> {
  let from: string | null = null
  do {
    const { records, next }: ListedRecords = await ask('list', null, (list) => list(from), core)
    for (const { key, ...rest } of records) {
      const name = recordName(key)
      if (name !== null) yield { ...name, ...rest }
    }
    from = next
  } while (from !== null)
}

/** Settles an unknown outcome: with an answer, or, `null`, as certainly failed; or lets it go on, with its steps. */
export async function resolveRecord(
  name: RecordName,
  attempt: number,
  as: Answer | null | 'rerun',
  core: CoreParts,
): Promise<CommandReply> {
  const { store, retentionMs } = core.options
  const reruns = as === 'rerun'
  // A store without steps would read it as failed for certain.
  if (reruns && store.resolve !== undefined && store.step === undefined) throw commandMissing('step')
  const { scope, key } = name
  const answer = reruns ? null : as
  const resolution = { token: newToken(), attempt, answer, retentionMs, ...(reruns && { rerun: true }) }
  const reply = await ask('resolve', name, (resolve) => resolve(storageKey(name), resolution), core)
  const settledAs = reruns ? 'rerun' : answer === null ? 'failed' : 'completed'
  if (reply.ok) core.emit({ type: 'resolved', scope, key, attempt, as: settledAs })
  return reply
}

export function commandOf<Name extends OperatorCommand>(store: Store, name: Name): NonNullable<Store[Name]> {
  const command = store[name]
  if (command === undefined) throw commandMissing(name, LISTS[name])
  return command.bind(store) as NonNullable<Store[Name]>
}

/** `name`: the record that the command is about; `null`: it is about several, so its failure is thrown and no event tells it. */
async function ask<Name extends OperatorCommand, Reply>(
  command: Name,
  name: RecordName | null,
  send: (command: NonNullable<Store[Name]>) => MaybePromise<Reply>,
  { calls, emit, options }: CoreParts,
): Promise<Reply> {
  const known = commandOf(options.store, command)
  let failure: StoreFailure | undefined
  const heard: Emit = (event) => {
    if (event.type === 'store_failed') failure = event.error
    if (name !== null) emit(event)
  }
  const reply = await calls.ask(command, name && { identity: name }, () => send(known), heard).whenReplied()
  if (reply === null) throw storeFailed(command, failure)
  return reply
}

const LISTS: { readonly [Name in OperatorCommand]?: string } = { list: 'listedIfUnknown', listScope: 'listed' }

const CHANGES: { readonly [Name in OperatorCommand]?: string } = {
  resolve: 'Whether the record was resolved is unknown: inspect it.',
  forget: 'Whether something was forgotten is unknown: repeat it.',
  listScope: 'The rest of the scope was not looked at: repeat it.',
}

function storeFailed(command: OperatorCommand, cause: StoreFailure | undefined): IdempotencyError {
  const what = CHANGES[command] ?? 'Nothing changed.'
  const why = cause?.message.replace(/\.$/, '')
  return new IdempotencyError('store_failed', `The store failed: ${why}. ${what}`, { cause })
}

/** Whose records: those of requests, or, with a namespace, those of other operations. */
export type ScopeName = Pick<RecordName, 'namespace' | 'scope'>

/** A record of a scope. */
export interface ScopeRecord extends RecordName {
  /** Without its answer: `answer: null`, unless nothing of it is kept. `null`: the store could not read the record. */
  readonly record: IdempotencyRecord | null
  /** What is left of the time for which it is kept; `null`: it could not be read. */
  readonly retentionRemainingMs: number | null
}

/** All records of a scope. */
export async function* recordsOf(of: ScopeName, core: CoreParts): AsyncGenerator<ScopeRecord, void, undefined> {
  for await (const { records, unread } of stepsThrough(of, core)) {
    for (const { key, ...rest } of records) yield { ...(recordName(key) as RecordName), ...rest }
    for (const key of unread) yield { ...(recordName(key) as RecordName), record: null, retentionRemainingMs: null }
  }
}

/** What became of a scope's answers. */
export interface ForgottenScope {
  /** The number of answers that are not kept any more. */
  readonly forgotten: number
  /** The number of records that were left: their operation runs, its outcome is unknown, or they changed meanwhile. */
  readonly left: number
  /** The number of records that the store could not read: their answers may still be there, until their retention ends. */
  readonly unreadable: number
}

/** Few, so that requests in between find a connection. */
const COMMANDS_AT_ONCE = 8

/** Drops the answers of a scope, a bounded step after the other. `countsOnly`: changes nothing. */
export async function forgetScope(of: ScopeName, countsOnly: boolean, core: CoreParts): Promise<ForgottenScope> {
  const forgotten = new Set<string>()
  const left = new Set<string>()
  const unreadable = new Set<string>()
  for await (const { records, unread } of stepsThrough(of, core)) {
    for (const key of unread) unreadable.add(key)
    for (let i = 0; i < records.length; i += COMMANDS_AT_ONCE) {
      const some = records.slice(i, i + COMMANDS_AT_ONCE)
      await Promise.all(some.map((each) => forgetAnswer(each, countsOnly, { forgotten, left }, core)))
    }
  }
  return { forgotten: forgotten.size, left: left.size, unreadable: unreadable.size }
}

/** The records of a scope as a store shows them, a bounded step after the other. */
async function* stepsThrough(of: ScopeName, core: CoreParts): AsyncGenerator<StepThrough, void, undefined> {
  const scope = storageScope(of)
  let from: string | null = null
  do {
    const step: ListedRecords = await ask('listScope', null, (list) => list(scope, from), core)
    const { records, next, unreadable = [] } = step
    yield {
      records: records.filter(({ key }) => isOf(of, recordName(key))),
      unread: unreadable.filter((key) => isOf(of, recordName(key))),
    }
    from = next
  } while (from !== null)
}

interface StepThrough {
  readonly records: readonly ListedRecord[]
  /** The storage keys of records that could not be read. */
  readonly unread: readonly string[]
}

/** Drops the answer of a record, or, `removes`, the record: the one that was looked at. */
export async function forgetRecord(
  name: RecordName,
  { state, attempt, fingerprint }: EndedRecord,
  removes: boolean,
  core: CoreParts,
): Promise<CommandReply> {
  const forgetting = { state, attempt, fingerprint, removes }
  return ask('forget', name, (forget) => forget(storageKey(name), forgetting), core)
}

/** A record of which something can be forgotten, if its outcome is known. */
export type EndedRecord = Exclude<IdempotencyRecord, { readonly state: 'in-flight' }>

/** By storage key, since a walk may come across a record twice. */
interface Found {
  readonly forgotten: Set<string>
  readonly left: Set<string>
}

async function forgetAnswer(
  { key, record }: ListedRecord,
  countsOnly: boolean,
  { forgotten, left }: Found,
  core: CoreParts,
): Promise<void> {
  if (isOpen(record)) left.add(key)
  if (record.state !== 'completed' || record.answer !== null) return
  const reply = countsOnly ? OK : await forgetRecord(recordName(key) as RecordName, record, false, core)
  if (reply.ok) {
    forgotten.add(key)
    left.delete(key)
  } else if (reply.record !== null && (reply.record.state === 'completed' || isOpen(reply.record))) {
    left.add(key)
  }
}

const OK: CommandReply = { ok: true }

/** A scope's storage keys may begin like a namespace's. */
function isOf(of: ScopeName, name: RecordName | null): boolean {
  return name !== null && name.scope === of.scope && name.namespace === of.namespace
}
