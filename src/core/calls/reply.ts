import type { CommandName } from '../events/events.js'
import type { Answer } from '../record/record.js'

/** A member of a reply that does not match the interface. */
export interface ReplyFault {
  /** Its path, for example `record.answer.status`; `''`: the reply itself. */
  readonly member: string
  /** In words, for example `an integer`. */
  readonly expected: string
  readonly seen: unknown
}

/**
 * The first member of a store's reply that does not match the interface: a store failure, like a record that cannot be read.
 * `fingerprint`: the command's; an operator's command has none. `faultIn` checks an
 * answer with a body.
 */
export function findReplyFault(
  command: CommandName,
  reply: unknown,
  fingerprint?: string,
  faultIn?: AnswerValidator,
): ReplyFault | null {
  if (!isObject(reply)) return toReplyFault('', 'an object', reply)
  const { record } = reply
  switch (command) {
    case 'begin':
      if (reply.acquired === true) return findClaimFault(reply)
      return reply.acquired === false
        ? findRecordFault(record, fingerprint, faultIn)
        : toReplyFault('acquired', 'true or false', reply.acquired)
    case 'look':
      if (reply.acquired !== true) return findReplyFault('begin', reply, fingerprint, faultIn)
      if (reply.seen !== null && typeof reply.seen !== 'string')
        return toReplyFault('seen', 'a string or null', reply.seen)
      return findClaimFault(reply)
    case 'fence':
      if (typeof reply.isTaken !== 'boolean') return toReplyFault('isTaken', 'true or false', reply.isTaken)
      if (typeof reply.isOwn !== 'boolean') return toReplyFault('isOwn', 'true or false', reply.isOwn)
      return record === null ? null : findRecordFault(record, fingerprint, faultIn)
    case 'list':
    case 'listScope':
      return findListFault(reply)
    case 'inspect':
      return record === null ? null : findRecordFault(record, fingerprint, faultIn)
    case 'forget':
      return findCommandReplyFault(reply, NOBODYS, faultIn)
    default:
      return findCommandReplyFault(reply, fingerprint, faultIn)
  }
}

/** The fingerprint of a command that is shown no answers. */
const NOBODYS = ''

function findCommandReplyFault(
  { ok, record }: Members,
  fingerprint: string | undefined,
  faultIn: AnswerValidator | undefined,
): ReplyFault | null {
  if (ok === true || (ok === false && record === null)) return null
  return ok === false ? findRecordFault(record, fingerprint, faultIn) : toReplyFault('ok', 'true or false', ok)
}

/** Returns what was expected of an answer; `null` if it is valid. */
export type AnswerValidator = (answer: Answer) => string | null

/** The attempt of an acquired claim is 1, 2, 3 … */
function findClaimFault({ attempt, previousOutcome, steps }: Members): ReplyFault | null {
  if (!Number.isInteger(attempt) || (attempt as number) < 1)
    return toReplyFault('attempt', 'an integer of at least 1', attempt)
  if (steps !== undefined && !(Array.isArray(steps) && steps.every(isStep)))
    return toReplyFault('steps', 'an array of { label, state, result }', steps)
  return OUTCOMES.has(previousOutcome)
    ? null
    : toReplyFault('previousOutcome', "'none', 'failed' or 'unknown'", previousOutcome)
}

function isStep(step: unknown): boolean {
  if (!isObject(step) || typeof step.label !== 'string') return false
  const { state, result } = step
  return (
    (state === 'begun' && result === null) || (state === 'done' && (result === null || result instanceof Uint8Array))
  )
}

const OUTCOMES = new Set<unknown>(['none', 'failed', 'unknown'])

function findListFault({ records, next, unreadable = [] }: Members): ReplyFault | null {
  if (next !== null && typeof next !== 'string') return toReplyFault('next', 'a string or null', next)
  if (!Array.isArray(unreadable) || !unreadable.every((key) => typeof key === 'string')) {
    return toReplyFault('unreadable', 'an array of strings', unreadable)
  }
  if (!Array.isArray(records)) return toReplyFault('records', 'an array', records)
  for (const listed of records as readonly unknown[]) {
    if (!isObject(listed)) return toReplyFault('records', 'an array of objects', records)
    const { key, record, retentionRemainingMs } = listed
    if (typeof key !== 'string') return toReplyFault('key', 'a string', key)
    const inRecord = findRecordFault(record, NOBODYS, undefined)
    if (inRecord !== null) return inRecord
    if (!Number.isFinite(retentionRemainingMs)) {
      return toReplyFault('retentionRemainingMs', 'a finite number', retentionRemainingMs)
    }
  }
  return null
}

function findRecordFault(
  record: unknown,
  fingerprint: string | undefined,
  faultIn: AnswerValidator | undefined,
): ReplyFault | null {
  if (!isObject(record)) return toReplyFault('record', 'an object', record)
  switch (record.state) {
    case 'in-flight':
      if (Number.isFinite(record.leaseRemainingMs)) return findRecordFingerprintFault(record)
      return toReplyFault('record.leaseRemainingMs', 'a finite number', record.leaseRemainingMs)
    case 'completed':
      if (typeof record.fingerprint !== 'string')
        return toReplyFault('record.fingerprint', 'a string', record.fingerprint)
      if (record.answer !== null) return findAnswerFault(record.answer, faultIn)
      return fingerprint !== undefined && fingerprint !== record.fingerprint // Not shown.
        ? null
        : toReplyFault('record.answer', 'the answer, which must be shown to the same fingerprint', null)
    case 'failed':
      if (typeof record.uncertain === 'boolean') return findRecordFingerprintFault(record)
      return toReplyFault('record.uncertain', 'true or false', record.uncertain)
    default:
      return toReplyFault('record.state', "'in-flight', 'completed' or 'failed'", record.state)
  }
}

function findRecordFingerprintFault({ fingerprint }: Members): ReplyFault | null {
  return typeof fingerprint === 'string' || fingerprint === null
    ? null
    : toReplyFault('record.fingerprint', 'a string or null', fingerprint)
}

function findAnswerFault(answer: unknown, faultIn: AnswerValidator | undefined): ReplyFault | null {
  if (!isObject(answer)) return toReplyFault('record.answer', 'an object', answer)
  const { status, statusMessage, headers, body } = answer
  if (!Number.isInteger(status)) return toReplyFault('record.answer.status', 'an integer', status)
  if (typeof statusMessage !== 'string') return toReplyFault('record.answer.statusMessage', 'a string', statusMessage)
  if (!Array.isArray(headers) || !headers.every(isPair)) {
    return toReplyFault('record.answer.headers', 'an array of pairs of strings', headers)
  }
  if (body === null) return null
  if (!ArrayBuffer.isView(body)) return toReplyFault('record.answer.body', 'bytes or null', body)
  const expected = faultIn?.(answer as unknown as Answer) ?? null
  return expected === null ? null : toReplyFault('record.answer', expected, answer)
}

function isPair(pair: unknown): boolean {
  return Array.isArray(pair) && pair.length === 2 && pair.every((part) => typeof part === 'string')
}

type Members = Readonly<Record<string, unknown>>

function toReplyFault(member: string, expected: string, seen: unknown): ReplyFault {
  return { member, expected, seen }
}

function isObject(value: unknown): value is Members {
  return typeof value === 'object' && value !== null
}
