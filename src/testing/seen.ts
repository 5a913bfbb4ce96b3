import { AssertionError } from 'node:assert/strict'
import { Buffer } from 'node:buffer'
import { inspect, isDeepStrictEqual } from 'node:util'
import type { Answer, Begun, Done, IdempotencyRecord } from '../core/index.js'

/** Replies reduced to what is promised: plain values, so that prototypes and extra members make no difference. */
export type SeenRecord =
  | {
      readonly state: 'in-flight'
      readonly fingerprint: string | null
      readonly attempt: number | null
      readonly uncertain: boolean
      readonly lease: 'live' | 'lapsed'
    }
  /** A store that cannot see into a running transaction. */
  | { readonly state: 'in-flight' }
  | { readonly state: 'completed'; readonly fingerprint: string; readonly attempt: number; readonly answer: SeenAnswer }
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

/** Turns replies into what is seen of them; `seesInside`: whether a running attempt shows what it is. */
export function eyes(seesInside: boolean) {
  function seenRecord(record: IdempotencyRecord): SeenRecord {
    const { state, fingerprint, attempt } = record
    switch (record.state) {
      case 'in-flight': {
        if (!seesInside) return { state: record.state }
        const lease = record.leaseRemainingMs > 0 ? 'live' : 'lapsed'
        return { state: record.state, fingerprint, attempt, uncertain: record.uncertain, lease }
      }
      case 'completed':
        return {
          state: record.state,
          fingerprint: record.fingerprint,
          attempt: record.attempt,
          answer: seenAnswer(record.answer),
        }
      case 'failed':
        return { state: record.state, fingerprint, attempt: record.attempt, uncertain: record.uncertain }
      default:
        return broken('A record is in-flight, completed or failed.', 'one of the three', state)
    }
  }

  function seenBegun(begun: Begun): SeenBegun {
    if (!begun.acquired) return { acquired: false, record: seenRecord(begun.record) }
    return { acquired: true, attempt: begun.attempt, previousOutcome: begun.previousOutcome }
  }

  function seenDone(done: Done): SeenDone {
    return done.ok ? { ok: true } : { ok: false, record: done.record === null ? null : seenRecord(done.record) }
  }

  return { seenRecord, seenBegun, seenDone }
}

export function seenAnswer({ status, statusMessage, headers, body }: Answer): SeenAnswer {
  const pairs = headers.map(([name, value]) => [name, value])
  return { status, statusMessage, headers: pairs, body: body === null ? null : hexOf(body) }
}

/** Throws an AssertionError that says which promise was broken, what was due and what was seen. */
export function promised(seen: unknown, due: unknown, promise: string): void {
  if (!isDeepStrictEqual(seen, due)) broken(promise, due, seen)
}

function broken(promise: string, due: unknown, seen: unknown): never {
  const shown = (value: unknown) => inspect(value, { depth: 6, maxStringLength: 200, breakLength: 100 })
  const message = `Broken: ${promise}\n  due:  ${shown(due)}\n  seen: ${shown(seen)}`
  throw new AssertionError({ message, actual: seen, expected: due, operator: 'deepStrictEqual' })
}

function hexOf(body: unknown): string {
  if (!ArrayBuffer.isView(body)) return `not bytes, but: ${typeof body}`
  return Buffer.from(body.buffer, body.byteOffset, body.byteLength).toString('hex')
}
