import { Buffer } from 'node:buffer'
import type { Answer, machine, StoredStep } from '../../src/core/index.js'
import { copySteps, joinRecordTexts, readFingerprint, readToken, splitRecordTexts } from './packed.js'

type StoredRecord = machine.StoredRecord

/**
 * A record as it is kept, in as few objects as possible, because each one that stays costs its bytes, and is copied by the garbage
 * collector. The machine reads its fields as those of any other record.
 */
export class MemoryEntry {
  readonly key: string
  state: StoredRecord['state'] = 'in-flight'
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
  keptStatus = 0
  /** The texts of a completed record in one: each string that stays is one more object to copy and to mark. */
  keptTexts: string | null = null
  keptToken: string | null = null
  keptFingerprint: string | null = null
  /** The body of an answer, or the steps: copies, because callers may change theirs. */
  content: string | Buffer | readonly StoredStep[] | null = null

  constructor(key: string) {
    this.key = key
  }

  get token(): string {
    return this.keptToken ?? readToken(this.keptTexts as string)
  }

  get fingerprint(): string | null {
    return this.keptTexts === null ? this.keptFingerprint : readFingerprint(this.keptTexts)
  }

  /** For each reader a copy, except for the bytes of a large body: copying them would cost more than sending them. */
  get answer(): Answer {
    const [, , statusMessage, ...lines] = splitRecordTexts(this.keptTexts as string) as [
      string,
      string,
      string,
      ...string[],
    ]
    const headers: [name: string, value: string][] = []
    for (let i = 0; i < lines.length; i += 2) headers.push([lines[i] as string, lines[i + 1] as string])
    const body = this.content as string | Buffer | null
    const ownBody = typeof body === 'string' ? Buffer.from(body, 'latin1') : body
    return { status: this.keptStatus, statusMessage, headers, body: ownBody }
  }

  /** Copies, too. */
  get steps(): readonly StoredStep[] | undefined {
    return this.state === 'completed' || this.content === null
      ? undefined
      : copySteps(this.content as readonly StoredStep[])
  }

  /** `content`: `copyContent` of the record. */
  setRecord(record: StoredRecord, bytes: number, content: MemoryEntry['content']): void {
    const { state } = record
    this.state = state
    this.attempt = record.attempt
    this.expiresAt = record.expiresAt
    this.bytes = bytes
    this.content = content
    this.leaseUntil = state === 'in-flight' ? record.leaseUntil : 0
    this.rerun = state === 'failed' ? record.rerun : undefined
    if (state === 'completed') {
      const { answer } = record
      this.uncertain = false
      this.keptStatus = answer.status
      this.keptTexts = joinRecordTexts(record.token, record.fingerprint, answer)
      this.keptToken = this.keptFingerprint = null
    } else {
      this.uncertain = record.uncertain
      this.keptTexts = null
      this.keptToken = record.token
      this.keptFingerprint = record.fingerprint
    }
  }
}

export interface Usage {
  readonly count: number
  readonly bytes: number
}

export const NO_USAGE: Usage = { count: 0, bytes: 0 }

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
 * ring with the queue as its end, so that a record leaves without knowing its queue.
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
