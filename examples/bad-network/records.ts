import type { Fault } from './faults.js'
import type { Reply } from './network.js'
import type { Payment } from './plan.js'

/** What the clients met, and were told. */
export interface Seen {
  readonly requests: number
  readonly faults: ReadonlyMap<Fault, number>
  /** What came back, by what it says. */
  readonly replies: ReadonlyMap<string, number>
  /** Successes that are not, byte for byte, the first one of their payment. */
  readonly differing: number
  /** Successes that another payment was given before. */
  readonly leaks: number
  /** Payments of which a client was not told a success in the end. */
  readonly unfinished: ReadonlySet<Payment>
  /** Other amounts under a used key that were not refused as such. */
  readonly acceptedChanges: number
}

export interface Records {
  readonly seen: Seen
  tried(reply: Reply | null): void
  struck(fault: Fault, times?: number): void
  /** What a client that wants a payment is told in the end. */
  ended(payment: Payment, reply: Reply | null): void
  /** What a client that sent another amount is told in the end. */
  endedChanged(reply: Reply | null): void
}

export function openRecords(): Records {
  const faults = new Map<Fault, number>()
  const replies = new Map<string, number>()
  const unfinished = new Set<Payment>()
  const seen = { requests: 0, faults, replies, differing: 0, leaks: 0, unfinished, acceptedChanges: 0 }
  const answers = new Map<Payment, string>()
  const payments = new Map<string, Payment>()

  return {
    seen,
    tried(reply) {
      seen.requests++
      add(replies, wordsOf(reply), 1)
    },
    struck: (fault, times = 1) => add(faults, fault, times),
    ended(payment, reply) {
      if (reply === null || !isSuccess(reply)) return void unfinished.add(payment)
      const answer = `${reply.status} ${reply.header('content-type')} ${reply.body}`
      if (firstOf(answers, payment, answer) !== answer) seen.differing++
      // What a service makes has an id, and no two payments make the same thing.
      const id = textIn(reply, 'id')
      if (id !== undefined && firstOf(payments, id, payment) !== payment) seen.leaks++
    },
    endedChanged(reply) {
      if (reply === null || reply.status !== 409 || textIn(reply, 'code') !== 'mismatched') seen.acceptedChanges++
    },
  }
}

export function isSuccess({ status }: Reply): boolean {
  return status >= 200 && status < 300
}

function wordsOf(reply: Reply | null): string {
  if (reply === null) return 'no answer'
  if (!isSuccess(reply)) return `${reply.status} ${textIn(reply, 'code') ?? ''}`.trimEnd()
  return `${reply.status} ${reply.header('idempotent-replayed') === 'true' ? 'replayed' : 'carried out'}`
}

function textIn({ body }: Reply, member: string): string | undefined {
  try {
    const value = JSON.parse(`${body}`)?.[member]
    return typeof value === 'string' ? value : undefined
  } catch {
    return undefined // Not JSON.
  }
}

function add<Name>(counts: Map<Name, number>, name: Name, times: number): void {
  counts.set(name, (counts.get(name) ?? 0) + times)
}

/** What the map holds for a key, which from now on is this value if it was nothing. */
function firstOf<Key, Value>(values: Map<Key, Value>, key: Key, value: Value): Value {
  const first = values.get(key) ?? value
  values.set(key, first)
  return first
}
