import { isDeepStrictEqual } from 'node:util'
import type { Answer, BeginReply, CommandReply, IdempotencyRecord } from 'once-per-key/core'
import type { Command, Reply } from '../../../test/support/histories.js'
import type { StoredRecord } from '../../../test/support/machine-records.js'
import type { Check } from '../checks.js'

/** One thing that a reply says, and the check that fails where a store says it otherwise. */
export type Aspect = readonly [check: Check, holds: boolean]

/** Compares a store's reply with the machine's. `slackMs`: how much of a lease may have passed really. */
export function aspectsOf(
  command: Command,
  record: StoredRecord | null,
  due: Reply,
  seen: Reply,
  slackMs: number,
): Aspect[] {
  if ('acquired' in due)
    return 'acquired' in seen ? aspectsOfBegun(command, record, due, seen, slackMs) : [['S7', false]]
  return 'ok' in seen ? aspectsOfDone(command, due, seen, slackMs) : [['S6', false]]
}

/** What is left of a record's life. None where the machine has one: it was dropped early, and its key is new again. */
export function aspectsOfLife(dueMs: number, seenMs: number, slackMs: number): Aspect[] {
  return [
    ['S4', seenMs < 0 ? dueMs <= 0 : seenMs >= dueMs - slackMs],
    ['S12', seenMs === NEVER_ENDS ? false : seenMs <= Math.max(dueMs, 0)],
  ]
}

/** As PTTL says it. */
const NEVER_ENDS = -1

function aspectsOfBegun(
  command: Command,
  record: StoredRecord | null,
  due: BeginReply,
  seen: BeginReply,
  slackMs: number,
): Aspect[] {
  const isAgain = command.type === 'begin' && record?.token === command.claim.token
  const claim = due.acquired ? (isAgain ? 'S7' : 'L1') : checkOfClaim(command, record, isAgain)
  const aspects: Aspect[] = [[claim, due.acquired === seen.acquired]]
  if (due.acquired && seen.acquired) {
    aspects.push([isAgain ? 'S7' : 'S6', due.attempt === seen.attempt])
    aspects.push([isAgain ? 'S7' : 'S5', due.previousOutcome === seen.previousOutcome])
    aspects.push(['S14', isDeepStrictEqual(stepsOf(due), stepsOf(seen))])
  }
  if (!due.acquired && !seen.acquired) aspects.push(...aspectsOfRecord(due.record, seen.record, slackMs))
  return aspects
}

/** What is broken by a claim where the machine refuses one. */
function checkOfClaim(command: Command, record: StoredRecord | null, isAgain: boolean): Check {
  if (command.type !== 'begin' || record === null) return 'L1'
  // Nobody runs it: its first copy was answered, and its attempt has ended.
  if (isAgain) return record.state === 'completed' ? 'S4' : 'L1'
  if (record.fingerprint !== null && record.fingerprint !== command.claim.fingerprint) return 'S9'
  if (record.state === 'completed') return 'S4'
  return record.state === 'in-flight' && command.claim.unknownOutcome === 'rerun' ? 'S1' : 'S5'
}

function aspectsOfDone(command: Command, due: CommandReply, seen: CommandReply, slackMs: number): Aspect[] {
  const check = due.ok ? CHECK_OF_REFUSAL[command.type] : 'S6'
  const aspects: Aspect[] = [[check, due.ok === seen.ok]]
  if (due.ok || seen.ok) return aspects
  if (due.record === null || seen.record === null) aspects.push(['S6', due.record === seen.record])
  else aspects.push(...aspectsOfRecord(due.record, seen.record, slackMs))
  return aspects
}

/** What is broken where an owner is refused: its success is not stored, its lease ends, its key is not freed. */
const CHECK_OF_REFUSAL = {
  begin: 'S7',
  complete: 'S3',
  renew: 'S1',
  release: 'L1',
  step: 'S14',
} as const satisfies Record<Command['type'], Check>

function aspectsOfRecord(due: IdempotencyRecord, seen: IdempotencyRecord, slackMs: number): Aspect[] {
  const aspects: Aspect[] = [
    ['S6', due.state === seen.state && due.attempt === seen.attempt],
    ['S9', due.fingerprint === seen.fingerprint],
  ]
  if (due.state === 'in-flight' && seen.state === 'in-flight') {
    const passedMs = due.leaseRemainingMs - seen.leaseRemainingMs
    aspects.push(['S5', due.uncertain === seen.uncertain], ['S1', passedMs >= 0 && passedMs <= slackMs])
  }
  if (due.state === 'completed' && seen.state === 'completed') {
    aspects.push(['S9', due.answer !== null || seen.answer === null])
    aspects.push(['S2', isDeepStrictEqual(plain(due.answer), plain(seen.answer))])
  }
  if (due.state === 'failed' && seen.state === 'failed') aspects.push(['S5', due.uncertain === seen.uncertain])
  return aspects
}

/** Bytes are bytes. */
function stepsOf({ steps = [] }: Extract<BeginReply, { acquired: true }>): unknown {
  return steps.map(({ label, state, result }) => ({ label, state, result: result && [...result] }))
}

/** Bytes are bytes, be they in a Buffer or not. */
function plain(answer: Answer | null): unknown {
  if (answer === null) return null
  const { body, ...rest } = answer
  return { ...rest, body: body === null ? null : [...body] }
}
