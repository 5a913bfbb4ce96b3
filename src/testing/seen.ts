import { AssertionError } from 'node:assert/strict'
import { Buffer } from 'node:buffer'
import { inspect, isDeepStrictEqual } from 'node:util'
import type { Answer, BeginReply, CommandReply, IdempotencyRecord, Step } from '../core/index.js'

/** Replies reduced to what is promised: plain values, so prototypes and extra members make no difference. */
export type SeenRecord =
  | (Omit<Shown<'in-flight'>, 'leaseRemainingMs' | 'steps'> & { readonly lease: 'live' | 'lapsed' })
  | (Omit<Shown<'completed'>, 'answer'> & { readonly answer: SeenAnswer | null })
  | Omit<Shown<'failed'>, 'steps' | 'rerun'>

type Shown<State> = Extract<IdempotencyRecord, { readonly state: State }>

export type SeenBegun =
  | {
      readonly acquired: true
      readonly attempt: number
      readonly previousOutcome: string
      /** Absent if there are none. */
      readonly steps?: readonly string[]
    }
  | { readonly acquired: false; readonly record: SeenRecord }

export type SeenDone = { readonly ok: true } | { readonly ok: false; readonly record: SeenRecord | null }

export interface SeenAnswer {
  readonly status: number
  readonly statusMessage: string
  readonly headers: readonly (readonly string[])[]
  /** Hexadecimal; `null`: not kept. */
  readonly body: string | null
}

export function toSeenRecord(record: IdempotencyRecord): SeenRecord {
  const { state } = record
  switch (record.state) {
    case 'in-flight': {
      const { fingerprint, attempt, uncertain, leaseRemainingMs } = record
      return { state: record.state, fingerprint, attempt, uncertain, lease: leaseRemainingMs > 0 ? 'live' : 'lapsed' }
    }
    case 'completed': {
      const { fingerprint, attempt, answer } = record
      return { state: record.state, fingerprint, attempt, answer: answer && toSeenAnswer(answer) }
    }
    case 'failed': {
      const { fingerprint, attempt, uncertain } = record
      return { state: record.state, fingerprint, attempt, uncertain }
    }
    default:
      return failPromise('A record is in-flight, completed or failed.', 'one of the three', state)
  }
}

export function toSeenBegun(begun: BeginReply): SeenBegun {
  if (!begun.acquired) return { acquired: false, record: toSeenRecord(begun.record) }
  const { attempt, previousOutcome, steps = [] } = begun
  return { acquired: true, attempt, previousOutcome, ...(steps.length > 0 && { steps: seenSteps(steps) }) }
}

/** A line each: label, state, and the result as Latin-1. */
function seenSteps(steps: readonly Step[]): string[] {
  return steps.map(({ label, state, result }) => {
    return `${label} ${state} ${result === null ? null : Buffer.from(result).toString('latin1')}`
  })
}

export function toSeenDone(done: CommandReply): SeenDone {
  return done.ok ? { ok: true } : { ok: false, record: done.record === null ? null : toSeenRecord(done.record) }
}

export function toSeenAnswer({ status, statusMessage, headers, body }: Answer): SeenAnswer {
  const pairs = headers.map(([name, value]) => [name, value])
  return { status, statusMessage, headers: pairs, body: body === null ? null : hexOf(body) }
}

// --- what a reply is to be

export const OK: SeenDone = { ok: true }

/** That of a claim of a key that was never claimed. */
export const NEW = expectAcquired(1, 'none')

export function expectAcquired(attempt: number, previousOutcome: string): SeenBegun {
  return { acquired: true, attempt, previousOutcome }
}

export function refused(record: SeenRecord | null): unknown {
  return { acquired: false, record }
}

export function expectStale(record: SeenRecord | null): SeenDone {
  return { ok: false, record }
}

/** A failure after which anybody may claim. */
export function failed(attempt = 1): SeenRecord {
  return { state: 'failed', fingerprint: null, attempt, uncertain: false }
}

export function getAnswer(record: SeenRecord | null): SeenAnswer | null {
  return record?.state === 'completed' ? record.answer : null
}

/** What a retry gets. */
export function getReplayedAnswer(begun: SeenBegun): SeenAnswer | null {
  return begun.acquired ? null : getAnswer(begun.record)
}

/** Throws an AssertionError with the broken promise, the members that differ, and both values. */
export function assertPromise(seen: unknown, due: unknown, promise: string): void {
  if (!isDeepStrictEqual(seen, due)) failPromise(promise, due, seen)
}

/** Limits the list of differing members. They come first, because runners truncate long messages. */
const MOST_MEMBERS = 5

/** Of each value that is shown. Longer ones, which a runner would print in full, it does not get. */
const MOST_CHARACTERS = 4_000

export function failPromise(
  promise: string,
  due: unknown,
  seen: unknown,
  differences = differencesOf(due, seen),
): never {
  const members = differences
    .slice(0, MOST_MEMBERS)
    .map(({ member, ...each }) => `\n  ${member}${member && ': '}due ${briefly(each.due)}, seen ${briefly(each.seen)}`)
  const more = differences.length > MOST_MEMBERS ? `\n  and ${differences.length - MOST_MEMBERS} members more` : ''
  const texts = [due, seen].map((value) => inspect(value, { depth: 6, maxStringLength: 200, breakLength: 100 }))
  const [dueText, seenText] = texts.map((text) => shortened(text, MOST_CHARACTERS))
  const message = `Broken: ${promise}${members.join('')}${more}\n\n  due:  ${dueText}\n  seen: ${seenText}`
  const isShort = texts.every(({ length }) => length <= MOST_CHARACTERS)
  throw new AssertionError(
    isShort ? { message, actual: seen, expected: due, operator: 'deepStrictEqual' } : { message },
  )
}

function hexOf(body: unknown): string {
  if (!ArrayBuffer.isView(body)) return `not bytes, but: ${typeof body}`
  return Buffer.from(body.buffer, body.byteOffset, body.byteLength).toString('hex')
}

interface Difference {
  /** Its path, for example `record.answer.status`; `''`: the value itself. */
  readonly member: string
  readonly due: unknown
  readonly seen: unknown
}

/** Where two values differ: the innermost members of plain objects and arrays, in the order of the expected value. */
function differencesOf(due: unknown, seen: unknown, member = ''): Difference[] {
  if (isDeepStrictEqual(due, seen)) return []
  if (!hasMembers(due) || !hasMembers(seen) || Array.isArray(due) !== Array.isArray(seen)) {
    return [{ member, due, seen }]
  }
  const names = new Set([...Object.keys(due), ...Object.keys(seen)])
  const inMembers = [...names].flatMap((name) =>
    differencesOf(memberOf(due, name), memberOf(seen, name), pathTo(due, member, name)),
  )
  return inMembers.length > 0 ? inMembers : [{ member, due, seen }]
}

/** On one line, shortened. */
function briefly(value: unknown): string {
  const text = inspect(value, {
    breakLength: Number.POSITIVE_INFINITY,
    compact: true,
    depth: 2,
    maxArrayLength: 5,
    maxStringLength: 80,
  })
  return shortened(text, 400).replace(/\s+/g, ' ')
}

function shortened(text: string, length: number): string {
  return text.length <= length ? text : `${text.slice(0, length)} …`
}

/** A placeholder that is printed as these words instead of a value. */
export function createPlaceholder(words: string): object {
  return { [inspect.custom]: () => words }
}

/** Differs from a member that is `undefined`. */
const ABSENT = createPlaceholder('nothing')

function memberOf(value: object, name: string): unknown {
  return Object.hasOwn(value, name) ? (value as Record<string, unknown>)[name] : ABSENT
}

function pathTo(value: object, member: string, name: string): string {
  if (Array.isArray(value)) return `${member}[${name}]`
  return member === '' ? name : `${member}.${name}`
}

function hasMembers(value: unknown): value is object {
  return typeof value === 'object' && value !== null && !ArrayBuffer.isView(value)
}
