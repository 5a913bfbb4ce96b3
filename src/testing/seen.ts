import { AssertionError } from 'node:assert/strict'
import { Buffer } from 'node:buffer'
import { inspect, isDeepStrictEqual } from 'node:util'
import type { Answer, BeginReply, CommandReply, IdempotencyRecord } from '../core/index.js'
import { briefly, differencesOf } from './difference.js'

/** Replies reduced to what is promised: plain values, so prototypes and extra members make no difference. */
export type SeenRecord =
  | {
      readonly state: 'in-flight'
      readonly fingerprint: string
      readonly attempt: number
      readonly uncertain: boolean
      readonly lease: 'live' | 'lapsed'
    }
  | {
      readonly state: 'completed'
      readonly fingerprint: string
      readonly attempt: number
      readonly answer: SeenAnswer | null
    }
  | {
      readonly state: 'failed'
      readonly fingerprint: string | null
      readonly attempt: number
      readonly uncertain: boolean
    }

export type SeenBegun =
  | { readonly acquired: true; readonly attempt: number; readonly previousOutcome: string }
  | { readonly acquired: false; readonly record: SeenRecord }

export type SeenDone = { readonly ok: true } | { readonly ok: false; readonly record: SeenRecord | null }

export interface SeenAnswer {
  readonly status: number
  readonly statusMessage: string
  readonly headers: readonly (readonly string[])[]
  /** Hexadecimal; `null`: not kept. */
  readonly body: string | null
}

export function seenRecord(record: IdempotencyRecord): SeenRecord {
  const { state } = record
  switch (record.state) {
    case 'in-flight': {
      const { fingerprint, attempt, uncertain, leaseRemainingMs } = record
      return { state: record.state, fingerprint, attempt, uncertain, lease: leaseRemainingMs > 0 ? 'live' : 'lapsed' }
    }
    case 'completed': {
      const { fingerprint, attempt, answer } = record
      return { state: record.state, fingerprint, attempt, answer: answer && seenAnswer(answer) }
    }
    case 'failed': {
      const { fingerprint, attempt, uncertain } = record
      return { state: record.state, fingerprint, attempt, uncertain }
    }
    default:
      return broken('A record is in-flight, completed or failed.', 'one of the three', state)
  }
}

export function seenBegun(begun: BeginReply): SeenBegun {
  if (!begun.acquired) return { acquired: false, record: seenRecord(begun.record) }
  return { acquired: true, attempt: begun.attempt, previousOutcome: begun.previousOutcome }
}

export function seenDone(done: CommandReply): SeenDone {
  return done.ok ? { ok: true } : { ok: false, record: done.record === null ? null : seenRecord(done.record) }
}

export function seenAnswer({ status, statusMessage, headers, body }: Answer): SeenAnswer {
  const pairs = headers.map(([name, value]) => [name, value])
  return { status, statusMessage, headers: pairs, body: body === null ? null : hexOf(body) }
}

/** Throws an AssertionError with the broken promise, the members that differ, and both values. */
export function promised(seen: unknown, due: unknown, promise: string): void {
  if (!isDeepStrictEqual(seen, due)) broken(promise, due, seen)
}

/** Limits the list of differing members. They come first, because runners truncate long messages. */
const MOST_MEMBERS = 5

export function broken(promise: string, due: unknown, seen: unknown, differences = differencesOf(due, seen)): never {
  const shown = (value: unknown) => inspect(value, { depth: 6, maxStringLength: 200, breakLength: 100 })
  const members = differences
    .slice(0, MOST_MEMBERS)
    .map(({ member, ...each }) => `\n  ${member}${member && ': '}due ${briefly(each.due)}, seen ${briefly(each.seen)}`)
  const more = differences.length > MOST_MEMBERS ? `\n  and ${differences.length - MOST_MEMBERS} members more` : ''
  const message = `Broken: ${promise}${members.join('')}${more}\n\n  due:  ${shown(due)}\n  seen: ${shown(seen)}`
  throw new AssertionError({ message, actual: seen, expected: due, operator: 'deepStrictEqual' })
}

function hexOf(body: unknown): string {
  if (!ArrayBuffer.isView(body)) return `not bytes, but: ${typeof body}`
  return Buffer.from(body.buffer, body.byteOffset, body.byteLength).toString('hex')
}
