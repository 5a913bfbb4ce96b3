import { requireStoreCommand } from '../calls/store-calls.js'
import { IdempotencyError } from '../errors.js'
import type { Emit, OperatorCommandName as OperatorCommand, StoreFailure } from '../events/events.js'
import type { MaybePromise } from '../maybe-promise.js'
import { commandMissingError } from '../misuse.js'
import { buildStorageKey, buildStorageScope, parseStorageKey, type RecordName } from '../record/identity.js'
import type { Answer, CommandReply, IdempotencyRecord, ListedRecord, ListedRecords } from '../record/record.js'
import { isOpen } from '../record/shown.js'
import { createToken } from '../record/token.js'
import type { CoreParts } from '../run/core-parts.js'
import type { Store } from '../store/store.js'

/** What operators do with the records of an engine. */
export interface RecordOperator {
  /**
   * The current record of an operation; `null` if there is none. Changes nothing, neither its lease nor its retention.
   *
   * @throws IdempotencyError `command_missing`, for your own store without `inspect`; `store_failed`. Nothing changed.
   */
  inspect(name: RecordName): Promise<IdempotencyRecord | null>
  /**
   * Settles an unknown outcome by hand: with an answer, or, `null`, as certainly failed. If the result is not ok,
   * nothing changed, and `record` shows why.
   *
   * @throws IdempotencyError `command_missing`, for your own store without `resolve`: nothing changed. `store_failed`:
   * it is unknown whether the record was resolved, so inspect it again.
   */
  resolve(name: RecordName, attempt: number, as: Answer | null | 'rerun'): Promise<CommandReply>
  /**
   * All records in the store with an unknown outcome, of this engine and of others, in the store's order, read in bounded
   * steps. Records that change meanwhile may be missing or appear twice.
   *
   * @throws IdempotencyError `command_missing`, for your own store without `list`; `store_failed`. Nothing changed.
   */
  unknown(): AsyncIterable<UnknownOutcome>
  /**
   * All records of a scope, in the same way, without their answers.
   *
   * @throws IdempotencyError `command_missing`, for your own store without `listScope`; `store_failed`. Nothing changed.
   */
  listScopeRecords(of: ScopeName): AsyncIterable<ScopeRecord>
  /**
   * Drops the answers of a scope, in bounded steps: its keys stay used, and a repetition is refused with
   * `answer_not_kept`. Leaves what runs and what has an unknown outcome. With `countsOnly` nothing changes.
   *
   * @throws IdempotencyError `command_missing`, for your own store without `forget` or `listScope`: nothing changed.
   * `store_failed`: the rest was not forgotten, so repeat it.
   */
  eraseScopeAnswers(of: ScopeName, options?: { readonly countsOnly?: boolean }): Promise<ErasedAnswers>
  /**
   * Drops the answer of the record that `inspect` showed, or, with `removes`, the record: then the key is new, and the
   * next request runs. If the result is not ok, nothing changed: it is another record by now, or its outcome is unknown.
   *
   * @throws IdempotencyError `command_missing`, for your own store without `forget`: nothing changed. `store_failed`:
   * whether it was forgotten is unknown, so repeat it.
   */
  forget(name: RecordName, record: EndedRecord, options?: { readonly removes?: boolean }): Promise<CommandReply>
}

export class OperatorCalls implements RecordOperator {
  readonly #core: CoreParts

  constructor(core: CoreParts) {
    this.#core = core
  }

  async inspect(name: RecordName): Promise<IdempotencyRecord | null> {
    const recordKey = buildStorageKey(name)
    const { record } = await this.#ask('inspect', name, async (inspect) => ({ record: await inspect(recordKey) }))
    return record
  }

  async *unknown(): AsyncGenerator<UnknownOutcome, void, undefined> {
    for await (const { records } of walk((from) => this.#ask('list', null, (list) => list(from)))) {
      for (const { key, ...rest } of records) {
        const name = parseStorageKey(key)
        if (name !== null) yield { ...name, ...rest }
      }
    }
  }

  async resolve(name: RecordName, attempt: number, as: Answer | null | 'rerun'): Promise<CommandReply> {
    const { store, retentionMs } = this.#core.options
    const reruns = as === 'rerun'
    // A store without steps would read it as failed for certain.
    if (reruns && store.resolve !== undefined && store.step === undefined) throw commandMissingError('step')
    const { scope, key } = name
    const answer = reruns ? null : as
    const resolution = { token: createToken(), attempt, answer, retentionMs, ...(reruns && { rerun: true }) }
    const reply = await this.#ask('resolve', name, (resolve) => resolve(buildStorageKey(name), resolution))
    const settledAs = reruns ? 'rerun' : answer === null ? 'failed' : 'completed'
    if (reply.ok) this.#core.emit({ type: 'resolved', scope, key, attempt, as: settledAs })
    return reply
  }

  async *listScopeRecords(of: ScopeName): AsyncGenerator<ScopeRecord, void, undefined> {
    for await (const { records, unread } of this.#listScopePages(of)) {
      for (const { key, ...rest } of records) yield { ...(parseStorageKey(key) as RecordName), ...rest }
      for (const key of unread)
        yield { ...(parseStorageKey(key) as RecordName), record: null, retentionRemainingMs: null }
    }
  }

  async eraseScopeAnswers(of: ScopeName, { countsOnly = false } = {}): Promise<ErasedAnswers> {
    const forgotten = new Set<string>()
    const left = new Set<string>()
    const unreadable = new Set<string>()
    for await (const { records, unread } of this.#listScopePages(of)) {
      for (const key of unread) unreadable.add(key)
      for (let i = 0; i < records.length; i += COMMANDS_AT_ONCE) {
        const some = records.slice(i, i + COMMANDS_AT_ONCE)
        await Promise.all(some.map((each) => this.#forgetAnswer(each, countsOnly, { forgotten, left })))
        await nextTurn()
      }
    }
    return { forgotten: forgotten.size, left: left.size, unreadable: unreadable.size }
  }

  async forget(
    name: RecordName,
    { state, attempt, fingerprint }: EndedRecord,
    { removes = false } = {},
  ): Promise<CommandReply> {
    const forgetting = { state, attempt, fingerprint, removes }
    return this.#ask('forget', name, (forget) => forget(buildStorageKey(name), forgetting))
  }

  async #forgetAnswer(
    { key, record }: ListedRecord,
    countsOnly: boolean,
    { forgotten, left }: ErasureProgress,
  ): Promise<void> {
    if (isOpen(record)) left.add(key)
    if (record.state !== 'completed' || record.answer !== null) return
    const reply = countsOnly ? OK : await this.forget(parseStorageKey(key) as RecordName, record)
    if (reply.ok) {
      forgotten.add(key)
      left.delete(key)
    } else if (reply.record !== null && (reply.record.state === 'completed' || isOpen(reply.record))) {
      left.add(key)
    }
  }

  /** The records of a scope as a store shows them. */
  async *#listScopePages(of: ScopeName): AsyncGenerator<ScopePage, void, undefined> {
    const scope = buildStorageScope(of)
    const steps = walk((from) => this.#ask('listScope', null, (list) => list(scope, from)))
    for await (const { records, unreadable = [] } of steps) {
      yield {
        records: records.filter(({ key }) => isInScope(of, parseStorageKey(key))),
        unread: unreadable.filter((key) => isInScope(of, parseStorageKey(key))),
      }
    }
  }

  /** `name`: the record that the command is about; `null`: it is about several, so its failure is thrown and no event tells it. */
  async #ask<Name extends OperatorCommand, Reply>(
    command: Name,
    name: RecordName | null,
    send: (command: NonNullable<Store[Name]>) => MaybePromise<Reply>,
  ): Promise<Reply> {
    const { calls, emit, options } = this.#core
    const known = requireStoreCommand(options.store, command)
    let failure: StoreFailure | undefined
    const heard: Emit = (event) => {
      if (event.type === 'store_failed') failure = event.error
      if (name !== null) emit(event)
    }
    const reply = await calls.ask(command, name && { identity: name }, () => send(known), heard).waitForReply()
    if (reply === null) throw storeFailedError(command, failure)
    return reply
  }
}

/** Through all that a store lists, a bounded step after the other. A store in the process gives the loop back between two of them. */
async function* walk(step: (from: string | null) => Promise<ListedRecords>): AsyncGenerator<ListedRecords> {
  let from: string | null = null
  do {
    const listed: ListedRecords = await step(from)
    yield listed
    from = listed.next
    if (from !== null) await nextTurn()
  } while (from !== null)
}

/** Requests are served before it resolves. */
function nextTurn(): Promise<void> {
  // Not every runtime has `setImmediate`, which no timer's least delay holds up.
  const later: (resolve: () => void) => void = globalThis.setImmediate ?? globalThis.setTimeout
  return new Promise((resolve) => void later(resolve))
}

const CHANGES: { readonly [Name in OperatorCommand]?: string } = {
  resolve: 'Whether the record was resolved is unknown: inspect it.',
  forget: 'Whether something was forgotten is unknown: repeat it.',
  listScope: 'The rest of the scope was not looked at: repeat it.',
}

function storeFailedError(command: OperatorCommand, cause: StoreFailure | undefined): IdempotencyError {
  const what = CHANGES[command] ?? 'Nothing changed.'
  const why = cause?.message.replace(/\.$/, '')
  return new IdempotencyError('store_failed', `The store failed: ${why}. ${what}`, { cause })
}

/** A record whose outcome is unknown, and what is left of the time for which it is kept, in milliseconds. */
export interface UnknownOutcome extends RecordName {
  readonly record: IdempotencyRecord
  /** Of these, the one with the least is the oldest, where all are kept equally long. */
  readonly retentionRemainingMs: number
}

/** Whose records: those of requests, or, with a namespace, those of other operations. */
export type ScopeName = Pick<RecordName, 'namespace' | 'scope'>

export interface ScopeRecord extends RecordName {
  /** Without its answer: `answer: null`, unless nothing of it is kept. `null`: the store could not read the record. */
  readonly record: IdempotencyRecord | null
  /** What is left of the time for which it is kept; `null`: it could not be read. */
  readonly retentionRemainingMs: number | null
}

export interface ErasedAnswers {
  /** The number of answers that are not kept any more. */
  readonly forgotten: number
  /** The number of records that were left: their operation runs, its outcome is unknown, or they changed meanwhile. */
  readonly left: number
  /** The number of records that the store could not read: their answers may still be there, until their retention ends. */
  readonly unreadable: number
}

/** Few, so that requests in between find a connection. */
const COMMANDS_AT_ONCE = 8

interface ScopePage {
  readonly records: readonly ListedRecord[]
  /** The storage keys of records that could not be read. */
  readonly unread: readonly string[]
}

/** A record of which something can be forgotten, if its outcome is known. */
export type EndedRecord = Exclude<IdempotencyRecord, { readonly state: 'in-flight' }>

/** By storage key, since a walk may come across a record twice. */
interface ErasureProgress {
  readonly forgotten: Set<string>
  readonly left: Set<string>
}

const OK: CommandReply = { ok: true }

/** A scope's storage keys may begin like a namespace's. */
function isInScope(of: ScopeName, name: RecordName | null): boolean {
  return name !== null && name.scope === of.scope && name.namespace === of.namespace
}
