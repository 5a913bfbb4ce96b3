import { Buffer } from 'node:buffer'
import type { Answer, machine, StoredStep } from '../../src/core/index.js'
import type { Form } from './forms.js'
import { computeSize, type Extra, getPart, type Packed, splitParts } from './packed.js'

type StoredRecord = machine.StoredRecord

/**
 * A record as it is kept: as few objects as possible, because each one that stays costs its bytes, and is copied by the
 * garbage collector. The machine reads its fields as those of any other record.
 */
export class Entry {
  readonly key: string
  /** What many records have in common. */
  form: Form
  /** Token, fingerprint and the answer's own header values. */
  text: string
  /** The body, or what is kept in its place. */
  content: Packed['content']
  attempt = 0
  leaseUntil = 0
  expiresAt = 0
  /** Where it is kept; `null`: nowhere, it was dropped. */
  share: Share | null = null
  /** Its neighbours in its share, by age. */
  older: Entry | null = null
  newer: Entry | null = null
  /** Its neighbours on its shelf: those that expire before and after it; at the ends, the shelf. */
  before: Entry | Shelf | null = null
  after: Entry | Shelf | null = null

  constructor(key: string, { form, text, content }: Packed) {
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
    const body = this.content as Exclude<Packed['content'], Extra>
    return {
      status: form.status,
      statusMessage: form.statusMessage,
      headers: form.headersWith(splitParts(this.text), 2),
      body: typeof body === 'string' ? Buffer.from(body, 'latin1') : body && Buffer.from(body),
    }
  }

  /** Copies, too. */
  get steps(): readonly StoredStep[] | undefined {
    return extraOf(this)?.steps.map((step) => ({ ...step, result: step.result && Buffer.from(step.result) }))
  }

  get rerun(): boolean {
    return extraOf(this)?.rerun === true
  }

  keep(
    { form, text, content }: Packed,
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
function extraOf({ form, content }: Entry): Extra | null {
  return form.state === 'completed' ? null : (content as Extra | null)
}

export interface Holding {
  readonly count: number
  readonly bytes: number
}

/** The records of one scope in a room, in the order in which they were written. */
export class Share implements Holding {
  readonly scope: string
  count = 0
  bytes = 0
  /** The first that may be dropped. */
  oldest: Entry | null = null
  #newest: Entry | null = null

  constructor(scope: string) {
    this.scope = scope
  }

  add(entry: Entry): void {
    this.count++
    this.bytes += entry.bytes
    entry.share = this
    entry.older = this.#newest
    if (this.#newest === null) this.oldest = entry
    else this.#newest.newer = entry
    this.#newest = entry
  }

  remove(entry: Entry): void {
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
export class Shelf {
  readonly keptMs: number
  after: Entry | Shelf = this
  before: Entry | Shelf = this

  constructor(keptMs: number) {
    this.keptMs = keptMs
  }

  get first(): Entry | null {
    return this.after === this ? null : (this.after as Entry)
  }

  add(entry: Entry): void {
    entry.before = this.before
    entry.after = this
    this.before.after = entry
    this.before = entry
  }
}

export function leaveShelf(entry: Entry): void {
  const before = entry.before as Entry | Shelf
  const after = entry.after as Entry | Shelf
  before.after = after
  after.before = before
  entry.before = entry.after = null
}
