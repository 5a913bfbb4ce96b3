import { Buffer } from 'node:buffer'
import type { Answer, machine, StoredStep } from '../../src/core/index.js'
import type { RecordTemplate } from './forms.js'
import { computeSize, getPart, type PackedRecord, type StepsContent, splitParts } from './packed.js'

type StoredRecord = machine.StoredRecord

/**
 * A record as it is kept: as few objects as possible, because each one that stays costs its bytes, and is copied by the
 * garbage collector. The machine reads its fields as those of any other record.
 */
export class MemoryEntry {
  readonly key: string
  /** What many records have in common. */
  form: RecordTemplate
  /** Token, fingerprint and the answer's own header values. */
  text: string
  /** The body, or what is kept in its place. */
  content: PackedRecord['content']
  attempt = 0
  leaseUntil = 0
  expiresAt = 0
  /** Where it is kept; `null`: nowhere, it was dropped. */
  share: ScopeEntries | null = null
  /** Its neighbours in its share, by age. */
  older: MemoryEntry | null = null
  newer: MemoryEntry | null = null
  /** Its neighbours on its shelf: those that expire before and after it; at the ends, the shelf. */
  before: MemoryEntry | ExpiryQueue | null = null
  after: MemoryEntry | ExpiryQueue | null = null

  constructor(key: string, { form, text, content }: PackedRecord) {
    this.key = key
    this.form = form
    this.text = text
    this.content = content
  }

  get bytes(): number {
    return computeSize(this.key, this)
  }

  get state(): StoredRecord['state'] {
    return this.form.state
  }

  get uncertain(): boolean {
    return this.form.uncertain
  }

  get token(): string {
    return getPart(this.text, 0)
  }

  get fingerprint(): string | null {
    return this.form.isBound ? getPart(this.text, 1) : null
  }

  /** A copy for each reader, who may modify it. */
  get answer(): Answer {
    const { form } = this
    const body = this.content as Exclude<PackedRecord['content'], StepsContent>
    return {
      status: form.status,
      statusMessage: form.statusMessage,
      headers: form.buildHeaders(splitParts(this.text), 2),
      body: typeof body === 'string' ? Buffer.from(body, 'latin1') : body && Buffer.from(body),
    }
  }

  /** Copies, too. */
  get steps(): readonly StoredStep[] | undefined {
    return getStepsContent(this)?.steps.map((step) => ({ ...step, result: step.result && Buffer.from(step.result) }))
  }

  get rerun(): boolean {
    return getStepsContent(this)?.rerun === true
  }

  setRecord(
    { form, text, content }: PackedRecord,
    { attempt, expiresAt, leaseUntil = 0 }: StoredRecord & { leaseUntil?: number },
  ) {
    this.form = form
    this.text = text
    this.content = content
    this.attempt = attempt
    this.leaseUntil = leaseUntil
    this.expiresAt = expiresAt
  }
}

/** Not a private getter: those cost each entry a field. */
function getStepsContent({ form, content }: MemoryEntry): StepsContent | null {
  return form.state === 'completed' ? null : (content as StepsContent | null)
}

export interface Usage {
  readonly count: number
  readonly bytes: number
}

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
