import fc from 'fast-check'
import { type Forgetting, type IdempotencyRecord, machine, type Resolution, type Store } from 'once-per-key/core'
import { type Event, histories, type Reply, repliesOfSteps, send, step } from './histories.js'

/** What an operator does in the middle of it. */
type OperatorCommand =
  | { readonly type: 'inspect'; readonly key: string }
  | { readonly type: 'resolve'; readonly key: string; readonly resolution: Resolution }
  | { readonly type: 'forget'; readonly key: string; readonly forgetting: Forgetting }

export type OperatedEvent = Event | OperatorCommand
export type OperatedReply = Reply | { readonly record: IdempotencyRecord | null }

/** What histories came across. Each must have happened, or the run showed nothing. */
export interface OperatorVisits {
  commands: number
  inspected: number
  resolvedAsFailed: number
  resolvedAsCompleted: number
  refused: number
  otherAttempts: number
  sentAgain: number
  answersForgotten: number
  removed: number
  notForgotten: number
  fenced: number
  claimedAfterwards: number
  marked: number
  stepsShown: number
}

export function noOperatorVisits(): OperatorVisits {
  return {
    commands: 0,
    inspected: 0,
    resolvedAsFailed: 0,
    resolvedAsCompleted: 0,
    refused: 0,
    otherAttempts: 0,
    sentAgain: 0,
    answersForgotten: 0,
    removed: 0,
    notForgotten: 0,
    fenced: 0,
    claimedAfterwards: 0,
    marked: 0,
    stepsShown: 0,
  }
}

/** The histories of requests, with operators who look, resolve and forget in between. */
export function operatedHistories(unitMs = 1): fc.Arbitrary<OperatedEvent[]> {
  const key = fc.constantFrom('k1', 'k2', 'k3')
  const body = fc.option(fc.uint8Array({ maxLength: 8 }), { freq: 5 })
  const headers = fc.array(fc.tuple(fc.constantFrom('link', 'x-a'), fc.constantFrom('1', 'caf\u00e9')), {
    maxLength: 2,
  })
  const answer = fc.record({
    status: fc.constantFrom(200, 201),
    statusMessage: fc.constantFrom('', 'Made'),
    headers,
    body,
  })
  const resolution = fc
    .record({
      token: fc.constantFrom('o1', 'o2', 'o3', 't1'),
      attempt: fc.constantFrom(0, 1, 1, 1, 1, 2, 2, 3, 4),
      answer: fc.option(answer, { freq: 2 }),
      rerun: fc.boolean(),
      retentionMs: fc.constantFrom(40 * unitMs, 100 * unitMs, 200 * unitMs),
    })
    .map((given) => (given.answer === null ? given : { ...given, rerun: false }))
  const lookedAt = fc.constantFrom(
    { state: 'completed' as const, fingerprint: 'f' },
    { state: 'completed' as const, fingerprint: 'f' },
    { state: 'completed' as const, fingerprint: 'f' },
    { state: 'completed' as const, fingerprint: 'g' },
    { state: 'failed' as const, fingerprint: null },
    { state: 'failed' as const, fingerprint: 'f' },
  )
  const forgetting = fc
    .tuple(lookedAt, fc.constantFrom(1, 1, 1, 1, 2), fc.boolean())
    .map(([seen, attempt, removes]) => ({ ...seen, attempt, removes }))
  const command: fc.Arbitrary<OperatorCommand> = fc.oneof(
    { weight: 1, arbitrary: fc.record({ type: fc.constant('inspect' as const), key }) },
    { weight: 5, arbitrary: fc.record({ type: fc.constant('resolve' as const), key, resolution }) },
    { weight: 7, arbitrary: fc.record({ type: fc.constant('forget' as const), key, forgetting }) },
  )
  const placed = fc.array(fc.tuple(fc.nat({ max: 90 }), command), { maxLength: 90, size: 'max' })
  return fc
    .tuple(histories(unitMs), placed)
    .map(([history, commands]) =>
      history.flatMap((event, i) => [event, ...commands.filter(([at]) => at === i).map(([, each]) => each)]),
    )
}

/** The replies of the machine, which are right by definition; counts what it came across. */
export function operatedRepliesOfMachine(
  history: readonly OperatedEvent[],
  visits: OperatorVisits,
  startMs = 1,
): OperatedReply[] {
  return repliesOfSteps<Command, OperatedReply>(history, stepOf, startMs, (command, { stored, record, reply, now }) =>
    count(command, machine.inspect(stored, now).record, record, reply, visits),
  )
}

/** The replies of a store to the same history. */
export async function operatedRepliesOfStore(
  history: readonly OperatedEvent[],
  store: Store,
  advance: (ms: number) => void | Promise<void>,
): Promise<OperatedReply[]> {
  const { inspect, resolve, forget } = store
  if (inspect === undefined || resolve === undefined || forget === undefined)
    throw new TypeError('The store is not operable.')
  const replies: OperatedReply[] = []
  for (const event of history) {
    if (event.type === 'advance') await advance(event.ms)
    else if (event.type === 'inspect') replies.push({ record: await inspect.call(store, event.key) })
    else if (event.type === 'resolve') replies.push(await resolve.call(store, event.key, event.resolution))
    else if (event.type === 'forget') replies.push(await forget.call(store, event.key, event.forgetting))
    else replies.push(await send(event, store, event.key))
  }
  return replies
}

type Command = Exclude<OperatedEvent, { type: 'advance' }>

function stepOf(command: Command, stored: machine.StoredRecord | null, now: number): machine.Change<OperatedReply> {
  switch (command.type) {
    case 'inspect': {
      const { record, reply } = machine.inspect(stored, now)
      return { record, reply: { record: reply } }
    }
    case 'resolve':
      return machine.resolve(stored, command.resolution, now)
    case 'forget':
      return machine.forget(stored, command.forgetting, now)
    default:
      return step(command, stored, now)
  }
}

function count(
  command: Command,
  before: machine.StoredRecord | null,
  after: machine.StoredRecord | null,
  reply: OperatedReply,
  visits: OperatorVisits,
): void {
  visits.commands++
  const wasResolved = before?.token.startsWith('o') ?? false
  switch (command.type) {
    case 'inspect':
      if (before !== null) visits.inspected++
      if ('record' in reply && reply.record !== null && 'steps' in reply.record) visits.stepsShown++
      return
    case 'resolve':
      if ('ok' in reply && !reply.ok) {
        visits.refused++
        if (before !== null && before.attempt !== command.resolution.attempt) visits.otherAttempts++
      } else if (before === after) visits.sentAgain++
      else if (after?.state === 'completed') visits.resolvedAsCompleted++
      else if (command.resolution.rerun === true) visits.marked++
      else visits.resolvedAsFailed++
      return
    case 'forget':
      if ('ok' in reply && !reply.ok) visits.notForgotten++
      else if (after === null) visits.removed++
      else if (before !== after) visits.answersForgotten++
      return
    case 'begin':
      if (wasResolved && 'acquired' in reply && reply.acquired) visits.claimedAfterwards++
      return
    default:
      if (wasResolved && 'ok' in reply && !reply.ok) visits.fenced++
  }
}
