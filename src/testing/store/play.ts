import { AssertionError } from 'node:assert/strict'
import { randomUUID } from 'node:crypto'
import { inspect, isDeepStrictEqual } from 'node:util'
import type { ListedRecord, ListedRecords, MaybePromise, Store } from '../../core/index.js'
import { assertPromise, failPromise, toSeenRecord, toSeenReply } from '../seen.js'
import { createCheckedStore, type WholeStore } from './checked-store.js'
import {
  type Command,
  type ConcurrentCommands,
  type Event,
  FINGERPRINT,
  Sender,
  type StoreTrial,
  type Wait,
  type Walk,
} from './history.js'
import { type Call, Oracle, type Reply } from './oracle.js'

/** The store that one test checks. */
export interface OpenedStore {
  readonly store: Store
  /** Advances the store's clock by `ms`. Without it the suite really waits. */
  readonly advance?: ((ms: number) => void | Promise<void>) | undefined
  /** Called at the end of the test, whether it passed or not. */
  readonly close?: (() => void | Promise<void>) | undefined
}

export interface Law {
  /** A sentence that begins with the name of its law. */
  readonly name: string
  /** What a store must have, as its options call it. */
  readonly needs: readonly ('operable' | 'listable' | 'forgetful' | 'stepped')[]
  readonly history: readonly Event[]
}

/** Events, or phases of several. */
type Phases = readonly (Event | readonly Event[])[]

export function createLaws(needs: Law['needs'], laws: Readonly<Record<string, Phases>>): Law[] {
  return Object.entries(laws).map(([name, phases]) => ({ name, needs, history: phases.flat() as Event[] }))
}

const REAL_UNIT_MS = 50
/** Of a clock that can be advanced. */
const UNIT_MS = 1_000
/** Timers fire a little early or late, and the server's clock differs from ours. */
const REAL_MARGIN_MS = 25
/** A store's clock counts whole milliseconds, and is another than ours: so close to the end it may be over there. */
const NEARLY_OVER_MS = 5

/** @throws AssertionError, if the store does not reply as the machine does */
export async function runLaw(law: Law, opened: OpenedStore): Promise<void> {
  for (let unitMs = opened.advance === undefined ? REAL_UNIT_MS : UNIT_MS; ; unitMs *= 2) {
    const play = new Play(law, opened, unitMs)
    try {
      for (const event of law.history) await play.run(event)
      return await play.assertFinalRecords()
    } catch (error) {
      if (!(error instanceof AssertionError) || !play.isSpoilt()) throw error
    }
  }
}

/** The length of the prefix of a law's keys. */
export const KEY_LENGTH = 'laws:'.length + randomUUID().length

const LOOK = new Sender('a look', { attempt: 1 })
const NEWCOMER = new Sender('a newcomer')

/** One law on trial: each command goes to the store, and to the machine, and both must reply the same. */
export class Play implements StoreTrial {
  /** What the law's keys begin with. */
  readonly key = `laws:${randomUUID()}`
  readonly store: WholeStore
  readonly #law: Law
  readonly #unitMs: number
  readonly #advance: OpenedStore['advance']
  readonly #oracle: Oracle
  /** Who has sent an owner's command, by key. */
  readonly #cast = new Map<string, Map<string, Sender>>()
  readonly #story: string[] = []
  readonly #startedAt = performance.now()
  #waitedMs = 0

  constructor(law: Law, { store, advance }: OpenedStore, unitMs: number) {
    this.store = createCheckedStore(store)
    this.#law = law
    this.#advance = advance
    this.#unitMs = unitMs
    this.#oracle = new Oracle(unitMs)
  }

  /** Whether the store was so late that a rest of one unit may be over, or less than half of it: then nothing is shown. */
  isSpoilt(): boolean {
    const lateMs = performance.now() - this.#startedAt - this.#waitedMs
    return this.#advance === undefined && lateMs >= this.#unitMs / 2 - NEARLY_OVER_MS
  }

  async run(event: Event): Promise<void> {
    if (typeof event === 'function') return event(this)
    if (event.type === 'wait') return this.#wait(event)
    if (event.type === 'walk') return this.#walk(event)
    const commands = event.type === 'command' ? [event] : event.commands
    await this.#send(commands, event.type === 'command' ? undefined : event.delay)
    for (const { name, sender, terms } of commands) {
      const { key = '', fingerprint = FINGERPRINT } = terms
      const cast = this.#cast.get(key) ?? new Map<string, Sender>()
      if (!OPERATORS.includes(name)) cast.set(sender, new Sender(sender, { key, fingerprint }))
      this.#cast.set(key, cast)
    }
    for (const key of new Set(commands.map(({ terms }) => terms.key ?? ''))) {
      if (this.#oracle.findRecord(key)) await this.#send([LOOK.copyWithTerms({ key }).renew()])
    }
  }

  /** Shows of each record who owns it in the end, and what the next claim replies. */
  async assertFinalRecords(): Promise<void> {
    for (const [key, cast] of this.#cast) {
      const record = this.#oracle.findRecord(key)
      if (record === undefined) continue
      if (record !== null) for (const sender of cast.values()) await this.#send([sender.renew()])
      const last = cast.get(this.#oracle.findSender(record?.token) ?? '')
      if (last !== undefined && record?.state !== 'in-flight')
        await this.#send([createRepeatedEnd(last, record?.state)])
      if (this.#law.needs.some((need) => need !== 'stepped')) await this.#send([LOOK.inspect({ key })])
      await this.#send([NEWCOMER.copyWithTerms({ key }).begin()])
    }
  }

  async #send(commands: readonly Command[], delay?: ConcurrentCommands['delay']): Promise<void> {
    const calls = commands.map((command) => this.#oracle.toCall(command))
    const replies = await Promise.all(
      calls.map(async (call, place) => {
        await delay?.(place, () => this.#turn())
        return this.#call(call)
      }),
    )
    for (const key of new Set(calls.map((call) => call.key))) {
      const places = [...calls.keys()].filter((place) => calls[place]?.key === key)
      const sent = places.map((place) => calls[place] as Call)
      const see = (each: readonly Reply[]) => each.map((reply, i) => this.#toSeenReply(sent[i] as Call, reply))
      const seen = see(places.map((place) => replies[place] as Reply))
      const predictions = this.#oracle.predict(sent)
      const right = predictions.filter((prediction) => isDeepStrictEqual(see(prediction.replies), seen))
      const group = places.map((place) => commands[place] as Command)
      if (right.length === 0) this.#failReplies(group, see(predictions[0]?.replies ?? []), seen)
      this.#oracle.keep(key, right)
    }
    for (const [place, { sender }] of commands.entries()) this.#oracle.noteReply(sender, replies[place] as Reply)
    this.#story.push(commands.map(describeCommand).join('; at once, '))
  }

  #toSeenReply(call: Call, reply: Reply): unknown {
    return toSeenReply(reply, {
      isInspected: call.name === 'inspect',
      seesRestored: this.#law.needs.includes('stepped'),
    })
  }

  async #call({ name, key, terms }: Call): Promise<Reply> {
    if (name === 'inspect') return { record: await this.store.inspect(this.key + key) }
    return (this.store[name] as (key: string, terms: object) => MaybePromise<Reply>)(this.key + key, terms)
  }

  async #walk(walk: Walk): Promise<void> {
    const scope = this.key + walk.scope
    const step = (from: string | null) =>
      walk.name === 'list' ? this.store.list(from) : this.store.listScope(scope, from)
    const due = new Map(this.#oracle.predictWalk(walk).map((listed) => [this.key + listed.key, listed]))
    const found = (await walkAll(step)).filter(({ key }) => walk.name === 'listScope' || key.startsWith(this.key))
    const seen = found.map((listed) => toSeenListed(listed, due.get(listed.key)?.retentionRemainingMs))
    const dueEntries = [...due].map(([key, listed]) => toSeenListed({ ...listed, key }))
    const [dueRecords, seenRecords] = [Object.fromEntries(dueEntries), Object.fromEntries(seen)]
    if (!isDeepStrictEqual(seenRecords, dueRecords)) this.#failEvent(`\`${walk.name}\``, dueRecords, seenRecords)
    this.#story.push(walk.name)
  }

  async #wait({ until }: Wait): Promise<void> {
    const unitMs = this.#unitMs
    const isReal = this.#advance === undefined
    const overMs = unitMs + REAL_MARGIN_MS
    const waits = isReal
      ? { unit: overMs, nearly: 3 * unitMs, rest: overMs }
      : { unit: unitMs, nearly: 4 * unitMs - 1, rest: 1 }
    const ms = typeof until === 'string' ? waits[until] : isReal ? overMs : until
    if (isReal) await new Promise((resolve) => setTimeout(resolve, ms))
    else await this.#advance?.(ms)
    this.#waitedMs += ms
    this.#oracle.nowMs += ms
    this.#story.push(`${ms} ms pass`)
  }

  /** Lets other work run first: with a real clock, one turn of the event loop. */
  async #turn(): Promise<void> {
    if (this.#advance === undefined) await new Promise((resolve) => setImmediate(resolve))
  }

  #failReplies(commands: readonly Command[], due: readonly unknown[], seen: readonly unknown[]): never {
    const [{ name, sender } = commands[0] as Command] = commands
    if (due.length === 1) this.#failEvent(`\`${name}\` by ${sender}`, due[0], seen[0])
    this.#failEvent('what comes at once, in whichever order', due, seen)
  }

  #failEvent(what: string, due: unknown, seen: unknown): never {
    const story = `\n\n  The machine says what is due. Before it:\n${this.#story.map((each) => `    ${each}`).join('\n')}`
    failPromise(`${this.#law.name}. Otherwise replies ${what}.`, due, seen, { story })
  }
}

const OPERATORS: readonly string[] = ['inspect', 'resolve', 'forget']

/** The last owner sends again what has ended its attempt: it is confirmed if the record still has its token. */
function createRepeatedEnd(last: Sender, state: string | undefined): Command {
  return state === 'completed' ? last.complete() : last.release()
}

function describeCommand({ name, sender, terms }: Command): string {
  const told = inspect(terms, { depth: 0, breakLength: Number.POSITIVE_INFINITY, compact: true, maxStringLength: 40 })
  return `${sender}: ${name} ${told}`
}

type SeenListed = readonly [key: string, { readonly record: unknown; readonly retentionRemainingMs: number }]

/** Clocks differ: what is about the rest of the retention counts as it. */
function toSeenListed({ key, record, retentionRemainingMs }: ListedRecord, dueMs = retentionRemainingMs): SeenListed {
  const isClose = retentionRemainingMs > dueMs / 2 && retentionRemainingMs <= dueMs + NEARLY_OVER_MS
  return [key, { record: toSeenRecord(record, false), retentionRemainingMs: isClose ? dueMs : retentionRemainingMs }]
}

async function walkAll(step: (from: string | null) => MaybePromise<ListedRecords>): Promise<ListedRecord[]> {
  const found: ListedRecord[] = []
  const begun = new Set<string>()
  for (let from: string | null = null; ; ) {
    const { records, next }: ListedRecords = await step(from)
    found.push(...records)
    if (next === null) return found
    assertPromise(begun.has(next), false, 'A walk ends: no step begins where an earlier one has begun.')
    begun.add(next)
    from = next
  }
}
