/**
 * What each command does to a record. Pure: the stored record and the time go in, the next record and the reply come
 * out. The memory store runs it, the Redis scripts transcribe it, and a property test holds both to it.
 *
 * `begin`: the first rule that fits.
 *
 * | record                                                             | result                                     |
 * |--------------------------------------------------------------------|--------------------------------------------|
 * | in-flight, own token (lapsed or not)                               | acquired again: same attempt and           |
 * |                                                                    | previousOutcome, the recorded steps; the   |
 * |                                                                    | lease starts anew                          |
 * | failed or completed, own token                                     | not acquired, no change                    |
 * | completed, in-flight, or failed and uncertain; other fingerprint   | not acquired: mismatched                   |
 * | completed                                                          | not acquired: replay                       |
 * | in-flight, lease live                                              | not acquired: in flight                    |
 * | in-flight, lapsed; or failed and uncertain                         | `refuse`, not marked `rerun`: not acquired;|
 * |                                                                    | else acquired, attempt + 1, uncertain,     |
 * |                                                                    | with the recorded steps                    |
 * | failed, certain                                                    | acquired, attempt + 1, any fingerprint     |
 * | none                                                               | acquired, attempt 1                        |
 *
 * Which refusal it is, the engine reads from the record that it is shown. A command with another fingerprint than a completed
 * record's is shown it without its answer, `answer: null`: nobody pays for a body that is not sent.
 *
 * The owner's commands:
 *
 * |              | own in-flight, lapsed or not | own completed | own failed    | none                 | another's |
 * |--------------|------------------------------|---------------|---------------|----------------------|-----------|
 * | `renew`      | ok                           | stale         | stale         | restores the claim   | stale     |
 * | `complete`   | completed                    | ok, no change | stale         | writes it            | stale     |
 * | `release`    | failed                       | stale         | ok, no change | writes the tombstone | stale     |
 * | `step` | recorded and renewed, unless | `begun`:      | stale         | restores the claim   | stale     |
 * |              | its token left a higher      | stale; else   |               | with it              |           |
 * |              | `order` for the label        | ok, no change |               |                      |           |
 *
 * Completion and a certain failure drop the steps, an uncertain one keeps them.
 *
 * An operator's commands. `inspect` shows the record, and changes nothing. `resolve` is a takeover by a token that runs
 * nothing: the outcome is unknown no more, and the dead owner's late commands are stale. The first rule that fits.
 *
 * | record                                                             | `resolve`                                  |
 * |--------------------------------------------------------------------|--------------------------------------------|
 * | none                                                               | stale                                      |
 * | failed or completed, own token                                     | ok, no change                              |
 * | another attempt than the one that was looked at                    | stale                                      |
 * | in-flight, lapsed; or failed and uncertain                         | that attempt, by this token: completed     |
 * |                                                                    | with the answer, or failed and certain;    |
 * |                                                                    | or, `rerun`, failed and uncertain, marked, |
 * |                                                                    | with its steps                             |
 * | in-flight, lease live; completed; or failed, certain               | stale                                      |
 *
 * The laws, whatever the interleaving:
 * 1. *Exclusive.* Between a claim and its end or lapse, nobody else claims.
 * 2. *One answer.* Once completed, the answer never changes while the record lives; only `forget` drops it.
 * 3. *Fenced.* A command without the owner's token changes no record that exists.
 * 4. *Repeatable.* A command issued twice equals the command issued once; a released token never claims again.
 * 5. *Bound.* While in-flight, completed or uncertain, the fingerprint never changes. The attempt only grows.
 * 6. *Seen is stored.* (The engine's: it sends a success after `complete` was confirmed.)
 * 7. *Fresh means fresh.* `previousOutcome` is `'none'` or `'failed'` only if no earlier attempt died, stalled, or
 *    failed after it may have had an effect. An attempt that an operator has resolved as failed counts as failed.
 * 8. *Steps.* A step whose result is recorded never runs again while its record lives. One that nobody recorded as begun
 *    has never begun, or each beginning was taken back.
 * 9. *Apart.* One record per (scope, key): no command sees another's.
 */
import {
  type Answer,
  attachSteps,
  type BeginReply,
  type Claim,
  type CommandReply,
  changeStep,
  type IdempotencyRecord,
  type Ownership,
  type PreviousOutcome,
  type Resolution,
  type StepChange,
  type StoredSteps,
  toNextOwnersSteps,
  toOwnersSteps,
  toShownSteps,
} from './record.js'

/** What a store keeps: the record, and its private fields. Times are of the store's own clock, in milliseconds. */
export type StoredRecord = (
  | {
      readonly state: 'in-flight'
      readonly fingerprint: string
      readonly attempt: number
      readonly uncertain: boolean
      readonly leaseUntil: number
      readonly steps?: StoredSteps
    }
  | { readonly state: 'completed'; readonly fingerprint: string; readonly attempt: number; readonly answer: Answer }
  | {
      readonly state: 'failed'
      readonly fingerprint: string | null
      readonly attempt: number
      readonly uncertain: boolean
      readonly steps?: StoredSteps
      /** An operator's mark: the next claim takes it over, even under `refuse`. */
      readonly rerun?: true
    }
) & {
  readonly token: string
  /** From this time on there is no record. */
  readonly expiresAt: number
}

/** The result of a command: the new record (the same object if unchanged) and the reply. */
export type Change<Reply> = {
  readonly record: StoredRecord | null
  readonly reply: Reply
}

export function begin(stored: StoredRecord | null, claim: Claim, now: number): Change<BeginReply> {
  const record = findLiveRecord(stored, now)
  if (record === null) return acquire(claim, 1, false, now)

  if (record.token === claim.token) {
    return record.state === 'in-flight' ? acquireAgain(record, claim, now) : refuse(record, claim, now)
  }

  switch (record.state) {
    case 'completed':
      return refuse(record, claim, now)
    case 'in-flight':
      if (record.fingerprint !== claim.fingerprint) return refuse(record, claim, now)
      if (now < record.leaseUntil) return refuse(record, claim, now)
      return takeOver(record, claim, now)
    case 'failed':
      if (!record.uncertain) return acquire(claim, record.attempt + 1, false, now)
      if (record.fingerprint !== claim.fingerprint) return refuse(record, claim, now)
      return takeOver(record, claim, now)
  }
}

export function renew(
  stored: StoredRecord | null,
  own: Ownership & { leaseMs: number },
  now: number,
): Change<CommandReply> {
  const record = findLiveRecord(stored, now)
  if (record === null) return { record: createClaimedRecord(own, own.attempt, own.uncertain, now), reply: RESTORED }
  if (record.token !== own.token || record.state !== 'in-flight') return createStaleChange(record, now, own)
  return { record: toExtendedRecord(record, own, now), reply: OK }
}

export function complete(
  stored: StoredRecord | null,
  own: Ownership & { answer: Answer },
  now: number,
): Change<CommandReply> {
  const record = findLiveRecord(stored, now)
  if (record !== null) {
    if (record.token !== own.token || record.state === 'failed') return createStaleChange(record, now, own)
    if (record.state === 'completed') return { record, reply: OK }
  }
  const { fingerprint, attempt } = record ?? own
  const { token, answer, retentionMs } = own
  return {
    record: { state: 'completed', token, fingerprint, attempt, answer, expiresAt: now + retentionMs },
    reply: OK,
  }
}

export function release(
  stored: StoredRecord | null,
  own: Ownership & { failedMs: number },
  now: number,
): Change<CommandReply> {
  const record = findLiveRecord(stored, now)
  if (record !== null) {
    if (record.token !== own.token || record.state === 'completed') return createStaleChange(record, now, own)
    if (record.state === 'failed') return { record, reply: OK }
  }
  const { attempt } = record ?? own
  const uncertain = own.uncertain || (record?.uncertain ?? false)
  const fingerprint = uncertain ? (record ?? own).fingerprint : null
  const expiresAt = now + (uncertain ? own.retentionMs : own.failedMs)
  const steps = uncertain && record?.state === 'in-flight' ? record.steps : undefined
  const failed = { state: 'failed', token: own.token, fingerprint, attempt, uncertain, expiresAt } as const
  return { record: attachSteps(failed, steps), reply: OK }
}

export function step(
  stored: StoredRecord | null,
  own: Ownership & StepChange & { leaseMs: number },
  now: number,
): Change<CommandReply> {
  const record = findLiveRecord(stored, now)
  if (record === null) {
    const restored = createClaimedRecord(own, own.attempt, own.uncertain, now, changeStep(undefined, own) ?? undefined)
    return { record: restored, reply: RESTORED }
  }
  if (record.token !== own.token || record.state === 'failed') return createStaleChange(record, now, own)
  if (record.state === 'completed')
    return own.state === 'begun' ? createStaleChange(record, now, own) : { record, reply: OK }
  const steps = changeStep(record.steps, own)
  return steps === null ? { record, reply: OK } : { record: toExtendedRecord(record, own, now, steps), reply: OK }
}

/** The steps with this change, for an owner that has locked its record. */
export function applyStep(steps: StoredSteps, change: StepChange): StoredSteps {
  return changeStep(steps, change) ?? steps
}

export function inspect(stored: StoredRecord | null, now: number): Change<IdempotencyRecord | null> {
  const { record, reply } = peek(stored, now)
  if (record === null || record.state === 'completed' || reply === null || reply.state === 'completed') {
    return { record, reply }
  }
  const rerun = record.state === 'failed' && record.rerun === true ? { rerun: true as const } : {}
  return { record, reply: attachSteps({ ...reply, ...rerun }, toShownSteps(record.steps)) }
}

/** The same without steps. */
export function peek(stored: StoredRecord | null, now: number): Change<IdempotencyRecord | null> {
  const record = findLiveRecord(stored, now)
  return { record, reply: record && toShownRecord(record, now) }
}

export function resolve(stored: StoredRecord | null, resolution: Resolution, now: number): Change<CommandReply> {
  const record = findLiveRecord(stored, now)
  if (record === null) return { record, reply: { ok: false, record } }
  const { token, answer, retentionMs } = resolution
  if (record.token === token && record.state !== 'in-flight') return { record, reply: OK }
  if (record.attempt !== resolution.attempt || !isUnknown(record, now)) return createStaleChange(record, now)

  const { fingerprint, attempt } = record
  // At least as long as the record that it replaces: until then, the lost owner may still wake up.
  const expiresAt = Math.max(record.expiresAt, now + retentionMs)
  if (resolution.rerun === true) {
    const marked = { state: 'failed', token, fingerprint, attempt, uncertain: true, expiresAt, rerun: true } as const
    return { record: attachSteps(marked, toNextOwnersSteps(record.steps)), reply: OK }
  }
  const resolved: StoredRecord =
    answer === null
      ? { state: 'failed', token, fingerprint: null, attempt, uncertain: false, expiresAt }
      : { state: 'completed', token, fingerprint, attempt, answer, expiresAt }
  return { record: resolved, reply: OK }
}

type InFlight = Extract<StoredRecord, { state: 'in-flight' }>
type UnknownRecord = Exclude<StoredRecord, { state: 'completed' }> & { readonly fingerprint: string }
type ClaimTerms = Pick<Claim, 'token' | 'fingerprint' | 'leaseMs' | 'retentionMs'>

const OK: CommandReply = Object.freeze({ ok: true })
const RESTORED: CommandReply = Object.freeze({ ok: true, restored: true })

function findLiveRecord(stored: StoredRecord | null, now: number): StoredRecord | null {
  return stored !== null && now < stored.expiresAt ? stored : null
}

/** The owner died or stalled, or the attempt failed and may have had its effect. The record is bound. */
function isUnknown(record: StoredRecord, now: number): record is UnknownRecord {
  if (record.state === 'in-flight') return now >= record.leaseUntil
  return record.state === 'failed' && record.uncertain
}

function acquire(
  claim: Claim,
  attempt: number,
  uncertain: boolean,
  now: number,
  steps?: StoredSteps,
): Change<BeginReply> {
  return {
    record: createClaimedRecord(claim, attempt, uncertain, now, steps),
    reply: createAcquiredReply(attempt, uncertain, steps),
  }
}

function acquireAgain(record: InFlight, claim: Claim, now: number): Change<BeginReply> {
  return {
    record: toExtendedRecord(record, claim, now),
    reply: createAcquiredReply(record.attempt, record.uncertain, record.steps),
  }
}

function createClaimedRecord(
  terms: ClaimTerms,
  attempt: number,
  uncertain: boolean,
  now: number,
  steps?: StoredSteps,
): StoredRecord {
  const { token, fingerprint } = terms
  const leaseUntil = now + terms.leaseMs
  const expiresAt = now + terms.retentionMs
  return attachSteps({ state: 'in-flight', token, fingerprint, attempt, uncertain, leaseUntil, expiresAt }, steps)
}

function toExtendedRecord(record: InFlight, terms: ClaimTerms, now: number, steps = record.steps): StoredRecord {
  const { state, token, fingerprint, attempt, uncertain } = record
  const leaseUntil = now + terms.leaseMs
  const expiresAt = now + terms.retentionMs
  return attachSteps({ state, token, fingerprint, attempt, uncertain, leaseUntil, expiresAt }, steps)
}

function createAcquiredReply(attempt: number, uncertain: boolean, steps?: StoredSteps): BeginReply {
  return attachSteps(
    { acquired: true, attempt, previousOutcome: computePreviousOutcome(attempt, uncertain) },
    toOwnersSteps(steps),
  )
}

function takeOver(
  record: Exclude<StoredRecord, { state: 'completed' }>,
  claim: Claim,
  now: number,
): Change<BeginReply> {
  const isMarked = record.state === 'failed' && record.rerun === true
  if (claim.unknownOutcome === 'refuse' && !isMarked) return refuse(record, claim, now)
  return acquire(claim, record.attempt + 1, true, now, toNextOwnersSteps(record.steps))
}

/** Derived, not stored, so a repeated `begin` gets the same reply as the first. */
function computePreviousOutcome(attempt: number, uncertain: boolean): PreviousOutcome {
  if (uncertain) return 'unknown'
  return attempt > 1 ? 'failed' : 'none'
}

function refuse(record: StoredRecord, claim: Claim, now: number): Change<BeginReply> {
  return { record, reply: { acquired: false, record: toShownRecord(record, now, claim) } }
}

function createStaleChange(record: StoredRecord, now: number, asker?: RecordViewer): Change<CommandReply> {
  return { record, reply: { ok: false, record: toShownRecord(record, now, asker) } }
}

/** The sender of a command; an operator's command has no fingerprint, and gets the whole record. */
type RecordViewer = { readonly fingerprint: string }

function toShownRecord(record: StoredRecord, now: number, asker?: RecordViewer): IdempotencyRecord {
  switch (record.state) {
    case 'in-flight': {
      const { state, fingerprint, attempt, uncertain, leaseUntil } = record
      return { state, fingerprint, attempt, uncertain, leaseRemainingMs: leaseUntil - now }
    }
    case 'completed': {
      const { state, fingerprint, attempt } = record
      const isOther = asker !== undefined && asker.fingerprint !== fingerprint
      return { state, fingerprint, attempt, answer: isOther ? null : record.answer }
    }
    case 'failed': {
      const { state, fingerprint, attempt, uncertain } = record
      return { state, fingerprint, attempt, uncertain }
    }
  }
}
