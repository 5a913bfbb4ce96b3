import type { machine } from 'once-per-key/core'
import { checkLapsed } from './check-owners.js'
import { isCertainlyWithoutEffect } from './check-runs.js'
import { checkReleasedSteps, checkTold, recordStep, refuseStep } from './check-steps.js'
import type { Evidence } from './evidence.js'
import type { Arrival, Command } from './history.js'
import { type Entry, entryAfter, type Ledger } from './ledger.js'
import { textOf } from './story.js'

/** S11: a run that goes on, or that has succeeded, is never released, whoever leaves. */
export function checkSent({ expect, attemptOf }: Evidence, command: Command): void {
  const { name, request, sentAt } = command
  const { run } = request
  const attempt = attemptOf(request)
  attempt.lastSentAt = sentAt
  if (name === 'renew') attempt.unansweredRenewal = command
  if (name === 'release') attempt.releases.push(command)
  if (name !== 'release' || run === null) return
  const { end, attempt: number, previousOutcome, steps } = run
  expect('S11', end !== null && !end.succeeded, request, 'a run is released that has not failed')
  if (end === null || end.succeeded) return
  const areTakenBack = steps.every(({ isTakenBack }) => isTakenBack)
  const isUncertain = !end.isCertain || !areTakenBack || (number > 0 && previousOutcome === 'unknown')
  const what = isUncertain ? 'a failure that may have had its effect' : 'a failure that certainly had no effect'
  expect('S5', command.terms.uncertain === isUncertain, request, `${what} is released as if it were not so`)
}

/** S1, S4 to S7 and S9, where a command meets the record. */
export function checkArrived(evidence: Evidence, arrival: Arrival, at: number): void {
  const { command, reply } = arrival
  const ledger = evidence.ledgerOf(command.request)
  const entry = ledger.at(at)
  arrival.epoch = ledger.epoch
  const attempt = evidence.attemptOf(command.request)
  if (command.isDuplicated) attempt.isDuplicated = true

  const isGranted = 'ok' in reply ? reply.ok : reply.acquired
  checkRecord(evidence, arrival, isGranted, at)
  if (command.name === 'begin') {
    attempt.begins++
    if (isGranted) checkGrantedClaim(evidence, arrival, ledger, entry, at)
    else checkRefusedClaim(evidence, arrival, entry, at)
  } else if (isGranted) {
    checkGrantedToOwner(evidence, arrival, ledger, entry, at)
  } else if (command.name === 'step') {
    refuseStep(command)
  } else if (command.name === 'complete' || command.name === 'release') {
    evidence.tally[command.name === 'complete' ? 'stale completions' : 'stale releases']++
  }
}

/** S6 on the records themselves, where the store shows them. */
function checkRecord({ expect }: Evidence, arrival: Arrival, isGranted: boolean, at: number): void {
  const { before, after, command } = arrival
  if (before === undefined || before === null || at >= before.expiresAt) return
  const isOwn = before.token === command.terms.token
  if (!isOwn && !(isGranted && command.name === 'begin')) {
    expect('S6', isSame(before, after), command.request, 'a command without the owner’s token changes the record')
  }
  const grows = after !== null && after !== undefined && after.attempt >= before.attempt
  expect('S6', grows, command.request, 'the attempt of a record shrinks')
}

function isSame(before: machine.StoredRecord, after: machine.StoredRecord | null | undefined): boolean {
  return before === after || JSON.stringify(before) === JSON.stringify(after)
}

function checkGrantedClaim(
  evidence: Evidence,
  arrival: Arrival,
  ledger: Ledger,
  entry: Entry | null,
  at: number,
): void {
  const { tally, expect } = evidence
  const { command, reply } = arrival
  const { terms, request } = command
  if (!('acquired' in reply) || !reply.acquired) return
  const attempt = evidence.attemptOf(request)

  const isOwn = entry?.token === terms.token
  if (entry !== null && isOwn) {
    if (command.isDuplicated) tally['begins sent again by a duplicate']++
    expect('S7', entry.state === 'held', request, 'a claim that has ended claims again')
    expect('S7', reply.attempt === entry.attempt, request, 'a repeated begin is told another attempt')
    const isToldTheSame = entry.previousOutcome === null || entry.previousOutcome === reply.previousOutcome
    expect('S7', isToldTheSame, request, 'a repeated begin is told another previous outcome')
  } else {
    if (entry !== null) checkSucceedsTo(evidence, arrival, entry, at)
    if (entry?.state === 'held') checkLapsed(evidence, entry.request, at)
    attempt.claimSentAt = command.sentAt
    attempt.mayBeFresh = [...ledger.life().attempts].every(({ request: { run } }) => {
      return run === null || run.request === request || isCertainlyWithoutEffect(run)
    })
    if (reply.previousOutcome === 'unknown') {
      tally.takeovers++
      ledger.life().takeovers++
    }
  }
  checkTold(evidence, request, reply, ledger, isOwn)
  ledger.write(entryAfter(arrival, entry, at, ''))
  ledger.enter(attempt)
}

/** A claim is granted although another's record stands: it must have ended or lapsed. */
function checkSucceedsTo({ expect }: Evidence, { command, reply }: Arrival, entry: Entry, at: number): void {
  const { request, terms } = command
  const isLive = entry.state === 'held' && at < entry.leaseUntil
  expect('S1', !isLive, request, 'a claim is granted while another’s lease is live')
  expect('S4', entry.state !== 'completed', request, 'a claim is granted on a completed record')
  const isBound = entry.state !== 'failed' || entry.isUncertain
  expect('S9', !isBound || entry.content === request.content, request, 'a claim is granted for another body')
  const grows = 'attempt' in reply && reply.attempt > entry.attempt
  expect('S6', grows, request, 'the attempt does not grow')
  if (isBound) {
    expect('S5', terms.unknownOutcome === 'rerun', request, 'an unknown outcome is run again under `refuse`')
  }
}

function checkRefusedClaim({ tally, expect }: Evidence, arrival: Arrival, entry: Entry | null, at: number): void {
  const { command, reply } = arrival
  const { request, terms } = command
  const record = 'record' in reply ? reply.record : null
  expect('S9', entry !== null, request, 'a claim is refused although its scope has no record for the key')
  if (entry === null) return
  if (entry.token === terms.token) {
    expect('S7', entry.state !== 'held', request, 'a repeated begin is refused its own claim')
    return
  }
  if (entry.content !== request.content && (entry.state !== 'failed' || entry.isUncertain)) return
  if (entry.state === 'completed') {
    const answer = record?.state === 'completed' ? record.answer : null
    const isReplayed = answer !== null && textOf(answer) === entry.answer
    expect('S3', isReplayed, request, 'the stored answer is not what is replayed')
  } else if (entry.state === 'failed' ? entry.isUncertain : at >= entry.leaseUntil) {
    tally['refused takeovers']++
    expect('L1', terms.unknownOutcome === 'refuse', request, 'a claim that has lapsed or failed holds its key')
  } else {
    expect('L1', entry.state === 'held', request, 'a certain failure holds its key')
  }
}

function checkGrantedToOwner(
  evidence: Evidence,
  arrival: Arrival,
  ledger: Ledger,
  entry: Entry | null,
  at: number,
): void {
  const { tally, expect } = evidence
  const { name, terms, request } = arrival.command
  const attempt = evidence.attemptOf(request)
  expect('S6', entry === null || entry.token === terms.token, request, `a ${name} is granted to another than the owner`)
  if (entry !== null && entry.token !== terms.token) return
  // A result that comes late is kept nowhere.
  if (name === 'step' && entry?.state === 'completed' && terms.state !== 'begun') return

  const answer = name === 'complete' && terms.answer !== undefined ? textOf(terms.answer) : ''
  if (entry === null || entry.state === 'held') {
    if (entry === null && name === 'renew') tally['restored claims']++
    if (name === 'step' && !recordStep(evidence, arrival)) return
    if (name === 'release') checkReleasedSteps(evidence, arrival.command)
    ledger.write(entryAfter(arrival, entry, at, answer))
    ledger.enter(attempt)
    if (name === 'complete' || ledger.isCertain(at)) ledger.life().steps.clear()
    if (name === 'complete') {
      attempt.completedIn = ledger.epoch
      ledger.life().stored = answer
    }
  } else {
    const isRepeated = entry.state === (name === 'complete' ? 'completed' : name === 'release' ? 'failed' : 'held')
    expect('S6', isRepeated, request, `a ${name} is granted after the attempt’s end`)
  }
}
