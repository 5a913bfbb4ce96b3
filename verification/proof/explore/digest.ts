import { hash } from 'node:crypto'
import type { machine } from 'once-per-key/core'
import type { Client } from './client.js'
import { isCertain, type Reply, textOf } from './history.js'
import { type Book, type Ledger, mayHaveHadEffect, mayLeaveDoubt, type Standing } from './ledger.js'
import type { Message } from './network.js'
import { resultOf } from './step-invariants.js'
import { FAILED_MS, TIMES } from './times.js'
import type { World } from './world.js'

/**
 * What two states share that go on alike: the records, what is under way, where each process stands, and what the history
 * binds the future to. Times count from now; in place of tokens and of the requests' numbers there is who did what.
 */
export function digestOf(world: World, ledger: Ledger): string {
  const { clients, network, records, clock } = world
  const now = clock.now()
  const requests = clients.map((client) => requestOf(client, ledger.standings[client.index] as Standing, world, now))
  const order = [...requests.keys()].sort((a, b) => compare(requests[a] as string, requests[b] as string))
  const rank = (by: number) => order.indexOf(by)

  const state = [
    order.map((index) => requests[index]),
    // In any order: each may come next.
    network.messages.map((message) => `${rank(message.by)} ${messageOf(message)}`).sort(),
    [...records].map(([key, record]) => [key, recordOf(record, rank, now)]),
    [...ledger.books].map(([scope, book]) => [scope, bookOf(book, rank, now)]),
  ]
  return hash('md5', JSON.stringify(state), 'base64')
}

/** Of a request that is over only what others may meet matters. */
function requestOf(client: Client, standing: Standing, { network, clock }: World, now: number): string {
  const { index, process, stage, steps } = client
  const isIdle = stage === 'told' && clock.timersOf(index).length === 0 && !steps.isWorking()
  const isOver = process === 'dead' || isIdle
  if (isOver && !network.messages.some(({ by }) => by === index)) {
    const { ran, stored } = standing.now
    const calls = standing.now.steps.map(({ label, told, end }) => [label, told, end])
    return JSON.stringify([standing.scope, ran, mayHaveHadEffect(standing), mayLeaveDoubt(standing), stored, calls])
  }
  const { by: _, waitsSince, run, ...rest } = withoutSteps(standing)
  const waitsForMs = waitsSince === null || standing.wasStopped ? waitsSince === null : now - waitsSince
  return JSON.stringify([rest, run && runOf(run), waitsForMs, isOver || processOf(client, clock.timersOf(index), now)])
}

/** Without those that it was told: the book has them. */
function withoutSteps({ now, ...rest }: Standing): Standing {
  const { firstReply } = now
  return { ...rest, now: { ...now, firstReply: firstReply?.acquired ? { ...firstReply, steps: [] } : firstReply } }
}

/** Ways to end that leave the effect open go on alike: whoever treats them differently shows it in what it sends. */
function runOf({ end, ...run }: Exclude<Standing['run'], null>): unknown {
  return [run, end === null || isCertain(end) ? end : 'open']
}

/** All that an engine still remembers, as far as it can matter. */
function processOf(client: Client, timers: ReturnType<World['clock']['timersOf']>, now: number): unknown {
  const { process, stage, leaseLost, arrivedAt, confirmedAt, renewedAt, toldAt, steps, sentSteps } = client
  // Beyond the limit, how long ago it was makes no difference.
  const since = (ms: number, limitMs: number) => Math.min(now - ms, limitMs)
  return [
    process,
    stage,
    leaseLost,
    steps.calls.map((call) => [call.label, call.stage]),
    sentSteps,
    since(arrivedAt, TIMES.maxRunMs),
    since(confirmedAt, TIMES.leaseMs),
    since(renewedAt, TIMES.leaseMs),
    since(toldAt, TIMES.leaseMs),
    timers.map(({ ms, dueAt, run }) => [ms, Math.max(0, dueAt - now), run.name]),
  ]
}

function messageOf({ command, reply, isCopy, isFresh }: Message): string {
  const own = command.name === 'begin' ? null : [command.own.attempt, command.own.uncertain]
  const step = command.name === 'step' ? [command.own.label, command.own.state, command.own.order] : null
  return JSON.stringify([command.name, own, step, reply && replyOf(reply), isCopy, isFresh])
}

/** Of a lease that stands in the way it matters only whether it had lapsed. */
function replyOf(reply: Reply): unknown {
  const record = 'record' in reply ? reply.record : null
  return record?.state === 'in-flight' ? { ...record, leaseRemainingMs: record.leaseRemainingMs > 0 } : reply
}

function recordOf(record: machine.StoredRecord, rank: Rank, now: number): unknown {
  const { state, attempt } = record
  switch (record.state) {
    case 'in-flight':
      return [state, attempt, record.uncertain, Math.max(0, record.leaseUntil - now), stepsOf(record.steps, rank)]
    case 'completed':
      return [state, attempt, runIn(textOf(record.answer), rank)]
    case 'failed':
      return [state, attempt, record.uncertain, stepsOf(record.steps, rank)]
  }
}

function stepsOf(steps: Extract<machine.StoredRecord, { state: 'failed' }>['steps'], rank: Rank): unknown {
  return steps?.map(({ label, state, order, result }) => [label, state, order, result && rank(resultOf(result))])
}

function bookOf(book: Book, rank: Rank, now: number): unknown {
  const { owner, holder, livesUntil, lastAttempt, bound, stored, seen, takeovers } = book
  const livesForMs = livesUntil - now
  return [
    owner === null ? null : rank(owner),
    holder && [rank(holder.by), Math.max(0, holder.until - now)],
    livesForMs > FAILED_MS ? 'long' : Math.max(0, livesForMs),
    [lastAttempt, bound, takeovers],
    Object.entries(book.steps.results).map(([label, by]) => [label, rank(by)]),
    Object.entries(book.steps.marks).map(([label, marks]) => [label, marksOf(marks, rank)]),
    [stored, seen].map((text) => text && runIn(text, rank)),
  ]
}

function marksOf(marks: Readonly<Record<string, string>>, rank: Rank): unknown {
  return Object.entries(marks)
    .map(([by, mark]) => `${rank(Number(by))} ${mark}`)
    .sort()
}

type Rank = (by: number) => number

/** Whose answer it is. */
function runIn(text: string, rank: Rank): number {
  return rank(Number(/run (\d+)/.exec(text)?.[1]))
}

function compare(a: string, b: string): number {
  if (a === b) return 0
  return a < b ? -1 : 1
}
