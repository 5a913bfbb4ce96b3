import { AssertionError } from 'node:assert/strict'
import { Buffer } from 'node:buffer'
import { inspect, isDeepStrictEqual } from 'node:util'
import type { Answer, BeginReply, CommandReply, IdempotencyRecord, Step } from '../core/index.js'

/** Replies reduced to what is promised: plain values, so prototypes and extra members make no difference. */
export function toSeenReply(
  reply: BeginReply | CommandReply | { readonly record: IdempotencyRecord | null },
  { isInspected, seesRestored }: { readonly isInspected: boolean; readonly seesRestored: boolean },
): unknown {
  if ('acquired' in reply && reply.acquired) {
    const { acquired, attempt, previousOutcome, steps = [] } = reply
    return { acquired, attempt, previousOutcome, ...(steps.length > 0 && { steps: steps.map(toSeenStep) }) }
  }
  const record = 'record' in reply ? { record: reply.record && toSeenRecord(reply.record, isInspected) } : {}
  if ('acquired' in reply) return { acquired: reply.acquired, ...record }
  if (!('ok' in reply)) return record
  return { ok: reply.ok, ...record, ...(seesRestored && reply.ok && { restored: reply.restored === true }) }
}

/** The mark and the steps of a record are shown by `inspect` alone. */
export function toSeenRecord(record: IdempotencyRecord, isInspected: boolean): unknown {
  const { state, fingerprint, attempt } = record
  const inspected = isInspected && record.state !== 'completed' ? toSeenMarks(record) : {}
  switch (record.state) {
    case 'in-flight': {
      const { uncertain, leaseRemainingMs } = record
      return { state, fingerprint, attempt, uncertain, lease: leaseRemainingMs > 0 ? 'live' : 'lapsed', ...inspected }
    }
    case 'completed':
      return { state, fingerprint, attempt, answer: record.answer && toSeenAnswer(record.answer) }
    case 'failed':
      return { state, fingerprint, attempt, uncertain: record.uncertain, ...inspected }
    default:
      return failPromise('A record is in-flight, completed or failed.', 'one of the three', state)
  }
}

function toSeenMarks(record: Exclude<IdempotencyRecord, { state: 'completed' }>): object {
  const steps = record.steps?.map((step) => ({ ...step }))
  return { ...(steps && { steps }), ...('rerun' in record && record.rerun && { rerun: true }) }
}

/** A line: label, state, and the result as Latin-1. */
function toSeenStep({ label, state, result }: Step): string {
  return `${label} ${state} ${result === null ? null : Buffer.from(result).toString('latin1')}`
}

function toSeenAnswer({ status, statusMessage, headers, body }: Answer): unknown {
  const pairs = headers.map(([name, value]) => [name, value])
  return { status, statusMessage, headers: pairs, body: body === null ? null : toHex(body) }
}

/** Throws an AssertionError with the broken promise, the members that differ, and both values. */
export function assertPromise(seen: unknown, due: unknown, promise: string): void {
  if (!isDeepStrictEqual(seen, due)) failPromise(promise, due, seen)
}

/** Limits the list of differing members. They come first, because runners truncate long messages. */
const MOST_MEMBERS = 5

/** Of each value that is shown. Longer ones, which a runner would print in full, it does not get. */
const MOST_CHARACTERS = 4_000

/** `story`: what came before, behind the values. */
export function failPromise(
  promise: string,
  due: unknown,
  seen: unknown,
  { differences = findDifferences(due, seen), story = '' } = {},
): never {
  const members = differences
    .slice(0, MOST_MEMBERS)
    .map(
      ({ member, ...each }) =>
        `\n  ${member}${member && ': '}due ${describeValue(each.due)}, seen ${describeValue(each.seen)}`,
    )
  const more = differences.length > MOST_MEMBERS ? `\n  and ${differences.length - MOST_MEMBERS} members more` : ''
  const texts = [due, seen].map((value) => inspect(value, { depth: 6, maxStringLength: 200, breakLength: 100 }))
  const [dueText, seenText] = texts.map((text) => shorten(text, MOST_CHARACTERS))
  const message = `Broken: ${promise}${members.join('')}${more}\n\n  due:  ${dueText}\n  seen: ${seenText}${story}`
  const isShort = texts.every(({ length }) => length <= MOST_CHARACTERS)
  throw new AssertionError(
    isShort ? { message, actual: seen, expected: due, operator: 'deepStrictEqual' } : { message },
  )
}

function toHex(body: unknown): string {
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
function findDifferences(due: unknown, seen: unknown, member = ''): Difference[] {
  if (isDeepStrictEqual(due, seen)) return []
  if (!hasMembers(due) || !hasMembers(seen) || Array.isArray(due) !== Array.isArray(seen)) {
    return [{ member, due, seen }]
  }
  const names = new Set([...Object.keys(due), ...Object.keys(seen)])
  const inMembers = [...names].flatMap((name) =>
    findDifferences(getMember(due, name), getMember(seen, name), buildPath(due, member, name)),
  )
  return inMembers.length > 0 ? inMembers : [{ member, due, seen }]
}

/** On one line, shortened. */
function describeValue(value: unknown): string {
  const text = inspect(value, {
    breakLength: Number.POSITIVE_INFINITY,
    compact: true,
    depth: 2,
    maxArrayLength: 5,
    maxStringLength: 80,
  })
  return shorten(text, 400).replace(/\s+/g, ' ')
}

function shorten(text: string, length: number): string {
  return text.length <= length ? text : `${text.slice(0, length)} …`
}

/** A placeholder that is printed as these words instead of a value. */
export function createPlaceholder(words: string): object {
  return { [inspect.custom]: () => words }
}

/** Differs from a member that is `undefined`. */
const ABSENT = createPlaceholder('nothing')

function getMember(value: object, name: string): unknown {
  return Object.hasOwn(value, name) ? (value as Record<string, unknown>)[name] : ABSENT
}

function buildPath(value: object, member: string, name: string): string {
  if (Array.isArray(value)) return `${member}[${name}]`
  return member === '' ? name : `${member}.${name}`
}

function hasMembers(value: unknown): value is object {
  return typeof value === 'object' && value !== null && !ArrayBuffer.isView(value)
}
