import { isOpen } from '../record/forget.js'
import { type RecordName, recordName, storageKey, storageScope } from '../record/identity.js'
import type { CommandReply, IdempotencyRecord, ListedRecord, ListedRecords } from '../record/record.js'
import type { CoreParts } from '../run/core-parts.js'
import { ask, commandOf } from './operator-calls.js'

/** Whose records: those of requests, or, with a namespace, those of other operations. */
export type ScopeName = Pick<RecordName, 'namespace' | 'scope'>

/** What became of a scope's answers. */
export interface ForgottenScope {
  /** The number of answers that are not kept any more. */
  readonly forgotten: number
  /** The number of records that were left: their operation runs, its outcome is unknown, or they changed meanwhile. */
  readonly left: number
}

/** Few, so that requests in between find a connection. */
const COMMANDS_AT_ONCE = 8

/** Drops the answers of a scope, a bounded step after the other. `countsOnly`: changes nothing. */
export async function forgetScope(of: ScopeName, countsOnly: boolean, core: CoreParts): Promise<ForgottenScope> {
  const list = commandOf(core.options.store, 'listScope')
  const scope = storageScope(of)
  const forgotten = new Set<string>()
  const left = new Set<string>()
  for (let from: string | null = null; ; ) {
    const at: string | null = from
    const { records, next }: ListedRecords = await ask('listScope', null, () => list(scope, at), core)
    const found = records.filter(({ key }) => isOf(of, recordName(key)))
    for (let i = 0; i < found.length; i += COMMANDS_AT_ONCE) {
      const some = found.slice(i, i + COMMANDS_AT_ONCE)
      await Promise.all(some.map((each) => forgetAnswer(each, countsOnly, { forgotten, left }, core)))
    }
    if (next === null) return { forgotten: forgotten.size, left: left.size }
    from = next
  }
}

/** Drops the answer of a record, or, `removes`, the record: the one that was looked at. */
export async function forgetRecord(
  name: RecordName,
  { state, attempt, fingerprint }: EndedRecord,
  removes: boolean,
  core: CoreParts,
): Promise<CommandReply> {
  const forget = commandOf(core.options.store, 'forget')
  return ask('forget', name, () => forget(storageKey(name), { state, attempt, fingerprint, removes }), core)
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
