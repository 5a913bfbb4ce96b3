import fc from 'fast-check'
import type { Store } from 'once-per-key/core'
import { expect } from 'vitest'
import { histories, noVisits, repliesOfMachine, repliesOfStore } from './histories.js'
import {
  noOperatorVisits,
  type OperatedReply,
  operatedHistories,
  operatedRepliesOfMachine,
  operatedRepliesOfStore,
} from './operator-histories.js'

/** The keys that histories are about. */
export const HISTORY_KEYS = ['k1', 'k2', 'k3']

// A step of a history is a multiple of a minute, so what passes really, some seconds at most, decides nothing.
const UNIT_MS = 60_000
const MOST_BATCHES = 10

/** Histories of one kind, and how often each thing in them must have happened. */
export interface Trial {
  readonly number: number
  readonly fewestCommands: number
  readonly fewestVisits: number
}

/** A store with records of its own, whose clock can be moved on. */
export interface Tried {
  readonly store: Store
  readonly advance: (ms: number) => Promise<void>
}

/** Tries random histories, `atOnce` at a time, on a store of each one's own: the replies are those of the machine. */
export function tryHistories(trial: Trial, atOnce: number, open: (number: number) => Tried): Promise<void> {
  const kind = { histories, repliesOfStore, repliesOfMachine, noVisits }
  return tryAll(kind, trial, atOnce, open)
}

/** The same with operators in between. */
export function tryOperatedHistories(trial: Trial, atOnce: number, open: (number: number) => Tried): Promise<void> {
  const kind = {
    histories: operatedHistories,
    repliesOfStore: operatedRepliesOfStore,
    repliesOfMachine: operatedRepliesOfMachine,
    noVisits: noOperatorVisits,
  }
  return tryAll(kind, trial, atOnce, open)
}

interface Kind<Event, Reply, Visits> {
  readonly histories: (unitMs: number) => fc.Arbitrary<Event[]>
  readonly repliesOfStore: (history: Event[], store: Store, advance: (ms: number) => Promise<void>) => Promise<Reply[]>
  readonly repliesOfMachine: (history: Event[], visits: Visits) => Reply[]
  readonly noVisits: () => Visits
}

async function tryAll<Event, Reply extends OperatedReply, Visits extends { readonly commands: number }>(
  kind: Kind<Event, Reply, Visits>,
  trial: Trial,
  atOnce: number,
  open: (number: number) => Tried,
): Promise<void> {
  const seed = fc.sample(fc.integer(), 1)[0] as number
  const { all, visits } = drawn(kind, trial, seed)

  async function tryOne(number: number): Promise<void> {
    const { store, advance } = open(number)
    const { history, due } = all[number] as Drawn<Event, Reply>
    const seen = await kind.repliesOfStore(history, store, advance)
    expect(structuredClone(seen.map(toWholeUnits)), `seed ${seed}, history ${number}`).toEqual(structuredClone(due))
  }

  let next = 0
  async function worker(): Promise<void> {
    while (next < all.length) await tryOne(next++)
  }
  await Promise.all(Array.from({ length: atOnce }, worker))
  expect(visits.commands).toBeGreaterThanOrEqual(trial.fewestCommands)
  // A run that tried nothing shows nothing.
  for (const [what, times] of Object.entries<number>({ ...visits }))
    expect(times, what).toBeGreaterThanOrEqual(trial.fewestVisits)
}

interface Drawn<Event, Reply> {
  readonly history: Event[]
  readonly due: Reply[]
}

/** As many histories as were asked for, and more of them while something rare has not happened often enough. */
function drawn<Event, Reply extends OperatedReply, Visits extends { readonly commands: number }>(
  kind: Kind<Event, Reply, Visits>,
  { number, fewestCommands, fewestVisits }: Trial,
  seed: number,
): { all: Drawn<Event, Reply>[]; visits: Visits } {
  const visits = kind.noVisits()
  const all: Drawn<Event, Reply>[] = []
  for (let batch = 0; batch < MOST_BATCHES; batch++) {
    for (const history of fc.sample(kind.histories(UNIT_MS), { numRuns: number, seed: seed + batch })) {
      all.push({ history, due: kind.repliesOfMachine(history, visits) })
    }
    const isEnough = Object.values<number>({ ...visits }).every((times) => times >= fewestVisits)
    if (isEnough && visits.commands >= fewestCommands) break
  }
  return { all, visits }
}

/** What was left of a lease before the time that passed really. */
function toWholeUnits(reply: OperatedReply): OperatedReply {
  if (!('record' in reply) || reply.record?.state !== 'in-flight') return reply
  const leaseRemainingMs = Math.ceil(reply.record.leaseRemainingMs / UNIT_MS) * UNIT_MS
  // No negative zero.
  return { ...reply, record: { ...reply.record, leaseRemainingMs: leaseRemainingMs + 0 } } as OperatedReply
}
