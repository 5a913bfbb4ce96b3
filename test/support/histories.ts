import fc from 'fast-check'
import type { BeginReply, CommandReply, Store } from 'once-per-key/core'
import { machine } from 'once-per-key/core'

/** A command, or the clock moving on. */
export type Event =
  | { readonly type: 'begin'; readonly key: string; readonly claim: Parameters<Store['begin']>[1] }
  | { readonly type: 'renew'; readonly key: string; readonly own: Parameters<Store['renew']>[1] }
  | { readonly type: 'complete'; readonly key: string; readonly own: Parameters<Store['complete']>[1] }
  | { readonly type: 'release'; readonly key: string; readonly own: Parameters<Store['release']>[1] }
  | {
      readonly type: 'step'
      readonly key: string
      readonly own: Parameters<NonNullable<Store['step']>>[1]
    }
  | Advance

interface Advance {
  readonly type: 'advance'
  readonly ms: number
}

export type Reply = BeginReply | CommandReply

/** What histories came across. Each must have happened, or the run showed nothing. */
export interface Visits {
  commands: number
  takeovers: number
  refusedTakeovers: number
  stales: number
  mismatches: number
  replays: number
  repeats: number
  restored: number
  expiredFailures: number
  expiredRetentions: number
  recordedSteps: number
  lateSteps: number
  handedOver: number
  stepsDropped: number
}

export function noVisits(): Visits {
  return {
    commands: 0,
    takeovers: 0,
    refusedTakeovers: 0,
    stales: 0,
    mismatches: 0,
    replays: 0,
    repeats: 0,
    restored: 0,
    expiredFailures: 0,
    expiredRetentions: 0,
    recordedSteps: 0,
    lateSteps: 0,
    handedOver: 0,
    stepsDropped: 0,
  }
}

/**
 * Histories of few keys, tokens and fingerprints, so that they meet, and of few durations, so that the clock stops before,
 * at and behind their ends. `unitMs`: how long the shortest is; 1 for a clock that can be moved.
 */
export function histories(unitMs = 1, maxLength = 90): fc.Arbitrary<Event[]> {
  const key = fc.constantFrom('k1', 'k2', 'k3')
  const token = fc.constantFrom('t1', 't2', 't3', 't4', 't5')
  const fingerprint = fc.constantFrom('f', 'f', 'f', 'g')
  const units = (...choices: number[]) => fc.constantFrom(...choices.map((choice) => choice * unitMs))
  const leaseMs = units(10, 20, 50)
  const retentionMs = units(100, 200)
  const failedMs = units(30, 60)
  const answer = fc.record({
    status: fc.integer({ min: 200, max: 399 }),
    statusMessage: fc.constantFrom('', 'Made'),
    headers: fc.array(fc.tuple(fc.constantFrom('link', 'x-a'), fc.constantFrom('1', '', 'caf\u00e9')), {
      maxLength: 3,
    }),
    body: fc.option(fc.uint8Array({ maxLength: 8 }), { freq: 5 }),
  })
  const scope = fc.constantFrom('acme')
  const own = { token, scope, fingerprint, attempt: fc.nat({ max: 3 }), uncertain: fc.boolean(), retentionMs }

  const event: fc.Arbitrary<Event> = fc.oneof(
    {
      weight: 8,
      arbitrary: fc.record({
        type: fc.constant('begin' as const),
        key,
        claim: fc.record({
          token,
          scope,
          fingerprint,
          leaseMs,
          retentionMs,
          unknownOutcome: fc.constantFrom('rerun', 'rerun', 'refuse'),
        }),
      }),
    },
    {
      weight: 3,
      arbitrary: fc.record({ type: fc.constant('renew' as const), key, own: fc.record({ ...own, leaseMs }) }),
    },
    {
      weight: 3,
      arbitrary: fc.record({ type: fc.constant('complete' as const), key, own: fc.record({ ...own, answer }) }),
    },
    {
      weight: 4,
      arbitrary: fc.record({ type: fc.constant('release' as const), key, own: fc.record({ ...own, failedMs }) }),
    },
    {
      weight: 8,
      arbitrary: fc.record({
        type: fc.constant('step' as const),
        key,
        own: fc
          .record({
            ...own,
            leaseMs,
            label: fc.constantFrom('charge', 'caf\u00e9'),
            order: fc.integer({ min: 1, max: 9 }),
            state: fc.constantFrom('begun' as const, 'done' as const, 'done' as const, 'undone' as const),
            result: fc.option(fc.uint8Array({ maxLength: 8 }), { freq: 5 }),
          })
          .map((given) => (given.state === 'done' ? given : { ...given, result: null })),
      }),
    },
    {
      weight: 6,
      arbitrary: fc.record({ type: fc.constant('advance' as const), ms: units(1, 9, 10, 20, 30, 60, 100) }),
    },
  )
  return fc.array(event, { minLength: 1, maxLength, size: 'max' })
}

/** The replies of the machine, which are right by definition; counts what it came across. */
export function repliesOfMachine(history: readonly Event[], visits: Visits, startMs = 1): Reply[] {
  return repliesOfSteps<Command, Reply>(history, step, startMs, (command, { stored, reply, now }) =>
    count(command, stored, reply, now, visits),
  )
}

/** What a command met and did. */
export interface Taken<Reply> {
  readonly stored: machine.StoredRecord | null
  readonly record: machine.StoredRecord | null
  readonly reply: Reply
  readonly now: number
}

/** Takes one step after the other, each from where the last one for its key has led, as the clock moves on. */
export function repliesOfSteps<Command extends { readonly type: string; readonly key: string }, Reply>(
  history: readonly (Command | Advance)[],
  step: (command: Command, stored: machine.StoredRecord | null, now: number) => machine.Change<Reply>,
  startMs: number,
  see: (command: Command, taken: Taken<Reply>) => void,
): Reply[] {
  const records = new Map<string, machine.StoredRecord>()
  const replies: Reply[] = []
  let now = startMs
  for (const event of history) {
    if (isAdvance(event)) {
      now += event.ms
      continue
    }
    const stored = records.get(event.key) ?? null
    const { record, reply } = step(event, stored, now)
    replies.push(reply)
    see(event, { stored, record, reply, now })
    if (record === null) records.delete(event.key)
    else records.set(event.key, record)
  }
  return replies
}

function isAdvance(event: { readonly type: string }): event is Advance {
  return event.type === 'advance'
}

/** The replies of a store to the same history; `name` turns a key of the history into one of the store's. */
export async function repliesOfStore(
  history: readonly Event[],
  store: Store,
  advance: (ms: number) => void | Promise<void>,
  name: (key: string) => string = (key) => key,
): Promise<Reply[]> {
  const replies: Reply[] = []
  for (const event of history) {
    if (event.type === 'advance') await advance(event.ms)
    else replies.push(await send(event, store, name(event.key)))
  }
  return replies
}

export type Command = Exclude<Event, Advance>

export function step(command: Command, stored: machine.StoredRecord | null, now: number): machine.Change<Reply> {
  switch (command.type) {
    case 'begin':
      return machine.begin(stored, command.claim, now)
    case 'renew':
      return machine.renew(stored, command.own, now)
    case 'complete':
      return machine.complete(stored, command.own, now)
    case 'release':
      return machine.release(stored, command.own, now)
    case 'step':
      return machine.step(stored, command.own, now)
  }
}

export async function send(command: Command, store: Store, key: string): Promise<Reply> {
  switch (command.type) {
    case 'begin':
      return store.begin(key, command.claim)
    case 'renew':
      return store.renew(key, command.own)
    case 'complete':
      return store.complete(key, command.own)
    case 'release':
      return store.release(key, command.own)
    case 'step': {
      if (store.step === undefined) throw new TypeError('The store keeps no steps.')
      return store.step(key, command.own)
    }
  }
}

export function count(
  command: Command,
  stored: machine.StoredRecord | null,
  reply: Reply,
  now: number,
  visits: Visits,
): void {
  visits.commands++
  if (stored !== null && now >= stored.expiresAt) {
    if (stored.state === 'failed' && !stored.uncertain) visits.expiredFailures++
    else visits.expiredRetentions++
  }
  const record = stored !== null && now < stored.expiresAt ? stored : null
  const steps = record === null || record.state === 'completed' ? undefined : record.steps
  if (command.type === 'step' && 'ok' in reply && reply.ok && record?.state === 'in-flight') {
    const before = steps?.find(({ label }) => label === command.own.label)
    if (before !== undefined && before.order > command.own.order) visits.lateSteps++
    else visits.recordedSteps++
  }
  if ('acquired' in reply && reply.acquired && reply.steps !== undefined) visits.handedOver++
  if (command.type === 'complete' && 'ok' in reply && reply.ok && steps !== undefined) visits.stepsDropped++
  if (command.type !== 'begin') {
    if ('ok' in reply && !reply.ok) visits.stales++
    else if (record === null) visits.restored++
    else if (record.state !== 'in-flight') visits.repeats++
    return
  }
  if (record === null || !('acquired' in reply)) return
  const { token, fingerprint } = command.claim
  const foreign = record.token !== token
  const unknown = record.state === 'in-flight' || (record.state === 'failed' && record.uncertain)
  if (reply.acquired) {
    if (foreign && unknown) visits.takeovers++
    if (!foreign) visits.repeats++
  } else if (foreign) {
    if (record.fingerprint !== fingerprint) visits.mismatches++
    else if (record.state === 'completed') visits.replays++
    else if (record.state === 'failed' || now >= record.leaseUntil) visits.refusedTakeovers++
  }
}
