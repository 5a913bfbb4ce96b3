import { Buffer } from 'node:buffer'
import type { Answer, machine, StoredStep } from '../../src/core/index.js'
import { copyBody, copySteps, joinHead, splitHead } from './packed.js'

type StoredRecord = machine.StoredRecord

/**
 * A record as it is kept, in as few objects as possible, because each one that stays costs its bytes, and is copied by the garbage
 * collector. The machine reads its fields as those of any other record.
 */
export class MemoryEntry {
  readonly key: string
  state: StoredRecord['state'] = 'in-flight'
  token = ''
  fingerprint: string | null = null
  attempt = 0
  uncertain = false
  leaseUntil = 0
  expiresAt = 0
  rerun: true | undefined = undefined
  /** Its size, as the bounds count it. */
  bytes = 0
  /** Where it is kept; `null`: nowhere, it was dropped. */
  share: ScopeEntries | null = null
  /** Its neighbours in its share, by age. */
  older: MemoryEntry | null = null
  newer: MemoryEntry | null = null
  /** Its neighbours in its queue: those that expire before and after it; at the ends, the queue. */
  before: MemoryEntry | ExpiryQueue | null = null
  after: MemoryEntry | ExpiryQueue | null = null
  /** The answer, and the steps: with copies of the bytes, because callers may change theirs. */
  keptStatus = 0
  keptHead = ''
  keptBody: string | Buffer | null = null
  keptSteps: readonly StoredStep[] | undefined = undefined

  constructor(key: string) {
    this.key = key
  }

  /** A copy for each reader, who may change it. */
  get answer(): Answer {
    const { keptBody: body } = this
    const texts = splitHead(this.keptHead)
    const headers: [name: string, value: string][] = []
    for (let i = 1; i < texts.length; i += 2) headers.push([texts[i] as string, texts[i + 1] as string])
    const ownBody = typeof body === 'string' ? Buffer.from(body, 'latin1') : body && Buffer.from(body)
    return { status: this.keptStatus, statusMessage: texts[0] as string, headers, body: ownBody }
  }

  /** Copies, too. */
  get steps(): readonly StoredStep[] | undefined {
    return this.keptSteps && copySteps(this.keptSteps)
  }

  setRecord(record: StoredRecord, bytes: number): void {
    const { state } = record
    this.state = state
    this.token = record.token
    this.fingerprint = record.fingerprint
    this.attempt = record.attempt
    this.expiresAt = record.expiresAt
    this.bytes = bytes
    const isCompleted = state === 'completed'
    this.uncertain = isCompleted ? false : record.uncertain
    this.keptSteps = isCompleted ? undefined : record.steps && copySteps(record.steps)
    this.leaseUntil = state === 'in-flight' ? record.leaseUntil : 0
    this.rerun = state === 'failed' ? record.rerun : undefined
    this.keptStatus = isCompleted ? record.answer.status : 0
    this.keptHead = isCompleted ? joinHead(record.answer) : ''
    this.keptBody = isCompleted ? copyBody(record.answer.body) : null
  }
}

export interface Usage {
  readonly count: number
  readonly bytes: number
}

export const NOTHING: Usage = { count: 0, bytes: 0 }

/** The records of one scope in a room, in the order in which they were written. */
export class ScopeEntries implements Usage {
  readonly scope: string
  count = 0
  bytes = 0
  /** The first that may be dropped. */
  oldest: MemoryEntry | null = null
  #newest: MemoryEntry | null = null

  constructor(scope: string) {
    this.scope = scope
  }

  add(entry: MemoryEntry): void {
    this.count++
    this.bytes += entry.bytes
    entry.share = this
    entry.older = this.#newest
    if (this.#newest === null) this.oldest = entry
    else this.#newest.newer = entry
    this.#newest = entry
  }

  remove(entry: MemoryEntry): void {
    this.count--
    this.bytes -= entry.bytes
    if (entry.older === null) this.oldest = entry.newer
    else entry.older.newer = entry.newer
    if (entry.newer === null) this.#newest = entry.older
    else entry.newer.older = entry.older
    entry.older = entry.newer = entry.share = null
  }
}

/**
 * The records of a room that are kept for the same time: the first that was written is the first to expire. They are a
 * ring with the shelf as its end, so that a record leaves without knowing its shelf.
 */
export class ExpiryQueue {
  readonly keptMs: number
  after: MemoryEntry | ExpiryQueue = this
  before: MemoryEntry | ExpiryQueue = this

  constructor(keptMs: number) {
    this.keptMs = keptMs
  }

  get first(): MemoryEntry | null {
    return this.after === this ? null : (this.after as MemoryEntry)
  }

  add(entry: MemoryEntry): void {
    entry.before = this.before
    entry.after = this
    this.before.after = entry
    this.before = entry
  }
}

export function leaveExpiryQueue(entry: MemoryEntry): void {
  const before = entry.before as MemoryEntry | ExpiryQueue
  const after = entry.after as MemoryEntry | ExpiryQueue
  before.after = after
  after.before = before
  entry.before = entry.after = null
}
