import { randomUUID } from 'node:crypto'
import { isDeepStrictEqual } from 'node:util'
import {
  type BeginReply,
  type CommandReply,
  type IdempotencyRecord,
  type ListedRecord,
  machine,
  toListedRecord,
  toListedRecordIfUnknown,
} from '../../core/index.js'
import {
  type Command,
  type CommandName,
  type Duration,
  type Event,
  FINGERPRINT,
  LONG_MS,
  type Terms,
  type Walk,
} from './history.js'

type StoredRecord = machine.StoredRecord | null

/** A command with all that it sends. */
export interface Call {
  readonly name: CommandName
  readonly key: string
  readonly terms: object & { readonly token: string; readonly fingerprint?: string }
}

/** To `inspect`, the reply is its record as a member. */
export type Reply = BeginReply | CommandReply | { readonly record: IdempotencyRecord | null }

/** What comes of commands for one key, in one order. */
export interface Prediction {
  readonly record: StoredRecord
  readonly replies: readonly Reply[]
}

const DEFAULTS: Partial<Terms> = {
  fingerprint: FINGERPRINT,
  leaseMs: LONG_MS,
  retentionMs: 2 * LONG_MS,
  failedMs: 2 * LONG_MS,
  unknownOutcome: 'rerun',
  attempt: 0,
  uncertain: false,
}

const OWNERSHIP = ['token', 'scope', 'fingerprint', 'attempt', 'uncertain', 'retentionMs'] as const

/** What each command sends, and no more. */
const SENT: Readonly<Record<CommandName, readonly (keyof Terms | 'token' | 'scope')[]>> = {
  begin: ['token', 'scope', 'fingerprint', 'leaseMs', 'retentionMs', 'unknownOutcome'],
  renew: [...OWNERSHIP, 'leaseMs'],
  complete: [...OWNERSHIP, 'answer'],
  release: [...OWNERSHIP, 'failedMs'],
  step: [...OWNERSHIP, 'leaseMs', 'label', 'state', 'order', 'result'],
  inspect: [],
  resolve: ['token', 'attempt', 'answer', 'rerun', 'retentionMs'],
  forget: ['state', 'attempt', 'fingerprint', 'removes'],
}

/** An end that is farther away than this does not come within a law. */
const FAR_MS = LONG_MS / 2

/**
 * Says by the machine what a store may reply. After commands that were sent at once a key may have one of
 * several records; each reply leaves those with which it is right.
 */
export class Oracle {
  nowMs = 1
  readonly #unitMs: number
  readonly #tokens = new Map<string, string>()
  readonly #owned = new Map<string, Partial<Terms>>()
  readonly #records = new Map<string, readonly StoredRecord[]>()

  constructor(unitMs: number) {
    this.#unitMs = unitMs
  }

  toCall({ name, sender, terms: given }: Command): Call {
    const all = { ...DEFAULTS, ...this.#owned.get(sender), ...given, token: this.#ensureToken(sender), scope: 'laws' }
    const sent = SENT[name].filter((field) => field in all)
    const entries = sent.map((field) => [field, field.endsWith('Ms') ? this.#toMs(all[field] as Duration) : all[field]])
    return { name, key: given.key ?? '', terms: Object.fromEntries(entries) }
  }

  /** What commands for one key may reply, in each order that can make a difference: whichever of them comes first. */
  predict(calls: readonly Call[]): Prediction[] {
    return this.#getRecords(calls[0]?.key ?? '').flatMap((before) =>
      calls.map((_, first): Prediction => {
        let record = before
        const replies: Reply[] = []
        for (const place of new Set([first, ...calls.keys()])) {
          const change = applyCall(record, calls[place] as Call, this.nowMs)
          record = change.record
          replies[place] = change.reply
        }
        return { record, replies }
      }),
    )
  }

  /** The same without a store, for a history of commands that acquire or succeed. */
  predictHistory(history: readonly Event[]): void {
    for (const event of history) {
      if ('until' in event) this.nowMs += this.#unitMs
      if (!('sender' in event)) continue
      const call = this.toCall(event)
      const predictions = this.predict([call])
      this.keep(call.key, predictions)
      for (const { replies } of predictions) this.noteReply(event.sender, replies[0] as Reply)
    }
  }

  predictWalk({ name, scope }: Walk): ListedRecord[] {
    const show = name === 'list' ? toListedRecordIfUnknown : toListedRecord
    return [...this.#records].flatMap(([key, [stored = null]]) => {
      const listed = name === 'list' || key.startsWith(`${scope}:`) ? show(stored, this.nowMs) : null
      return listed === null ? [] : [{ key, ...listed }]
    })
  }

  keep(key: string, predictions: readonly Prediction[]): void {
    const records = predictions.map(({ record }) => record)
    const isFirst = (record: StoredRecord, i: number) =>
      records.findIndex((each) => isDeepStrictEqual(each, record)) === i
    this.#records.set(key, records.filter(isFirst))
  }

  /** A sender says of its claim what `begin` has replied. */
  noteReply(sender: string, reply: Reply): void {
    if (!('acquired' in reply) || !reply.acquired) return
    this.#owned.set(sender, { attempt: reply.attempt, uncertain: reply.previousOutcome === 'unknown' })
  }

  /** The record of this key; `undefined`: it is not known, or may soon be another. */
  findRecord(key: string): StoredRecord | undefined {
    const records = this.#getRecords(key).map((each) => machine.peek(each, this.nowMs).record)
    const [record = null, ...others] = records
    if (others.some((other) => (other === null) !== (record === null))) return undefined
    if (record === null) return null
    const ends = [record.expiresAt, record.state === 'in-flight' ? record.leaseUntil : 0]
    return ends.some((end) => end > this.nowMs && end < this.nowMs + FAR_MS) ? undefined : record
  }

  findSender(token: string | undefined): string | undefined {
    return [...this.#tokens].find(([, each]) => each === token)?.[0]
  }

  #getRecords(key: string): readonly StoredRecord[] {
    return this.#records.get(key) ?? [null]
  }

  #ensureToken(sender: string): string {
    const token = this.#tokens.get(sender) ?? randomUUID()
    this.#tokens.set(sender, token)
    return token
  }

  #toMs(duration: Duration): number {
    return typeof duration === 'number' ? duration : Number.parseFloat(duration) * this.#unitMs
  }
}

type Machine = (stored: StoredRecord, terms: object, now: number) => machine.Change<Reply>

function applyCall(stored: StoredRecord, { name, terms }: Call, now: number): machine.Change<Reply> {
  if (name !== 'inspect') return (machine[name] as Machine)(stored, terms, now)
  const { record, reply } = machine.inspect(stored, now)
  return { record, reply: { record: reply } }
}
