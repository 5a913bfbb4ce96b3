import { hash } from 'node:crypto'
import type { machine } from 'once-per-key/core'
import type { Client } from './client.js'
import { isCertain, type Reply, textOf } from './history.js'
import { type Book, type Ledger, mayHaveHadEffect, mayLeaveDoubt, type Standing } from './ledger.js'
import type { Message } from './network.js'
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
  const { index, process, stage } = client
  const isOver = process === 'dead' || (stage === 'told' && clock.timersOf(index).length === 0)
  if (isOver && !network.messages.some(({ by }) => by === index)) {
    const { ran, stored } = standing.now
    return JSON.stringify([standing.scope, ran, mayHaveHadEffect(standing), mayLeaveDoubt(standing), stored])
  }
  const { by: _, waitsSince, run, ...rest } = standing
  const waitsForMs = waitsSince === null || standing.wasStopped ? waitsSince === null : now - waitsSince
  return JSON.stringify([rest, run && runOf(run), waitsForMs, isOver || processOf(client, clock.timersOf(index), now)])
}

/** Ways to end that leave the effect open go on alike: whoever treats them differently shows it in what it sends. */
function runOf({ end, ...run }: Exclude<Standing['run'], null>): unknown {
  return [run, end === null || isCertain(end) ? end : 'open']
}

/** All that an engine still remembers, as far as it can matter. */
function processOf(client: Client, timers: ReturnType<World['clock']['timersOf']>, now: number): unknown {
  const { process, stage, leaseLost, arrivedAt, confirmedAt, renewedAt, toldAt } = client
  // Beyond the limit, how long ago it was makes no difference.
  const since = (ms: number, limitMs: number) => Math.min(now - ms, limitMs)
  return [
    process,
    stage,
    leaseLost,
    since(arrivedAt, TIMES.maxRunMs),
    since(confirmedAt, TIMES.leaseMs),
    since(renewedAt, TIMES.leaseMs),
    since(toldAt, TIMES.leaseMs),
    timers.map(({ ms, dueAt, run }) => [ms, Math.max(0, dueAt - now), run.name]),
  ]
}

function messageOf({ command, reply, isCopy, isFresh }: Message): string {
  const own = command.name === 'begin' ? null : [command.own.attempt, command.own.uncertain]
  return JSON.stringify([command.name, own, reply && replyOf(reply), isCopy, isFresh])
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
      return [state, attempt, record.uncertain, Math.max(0, record.leaseUntil - now)]
    case 'completed':
      return [state, attempt, runIn(textOf(record.answer), rank)]
    case 'failed':
      return [state, attempt, record.uncertain]
  }
}

function bookOf(book: Book, rank: Rank, now: number): unknown {
  const { owner, holder, livesUntil, lastAttempt, bound, stored, seen, takeovers } = book
  const livesForMs = livesUntil - now
  return [
    owner === null ? null : rank(owner),
    holder && [rank(holder.by), Math.max(0, holder.until - now)],
    livesForMs > FAILED_MS ? 'long' : Math.max(0, livesForMs),
    [lastAttempt, bound, takeovers],
    [stored, seen].map((text) => text && runIn(text, rank)),
  ]
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
