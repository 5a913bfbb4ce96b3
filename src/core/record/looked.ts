import { begin, type Change, peek, type StoredRecord } from './machine.js'
import {
  type Acquired,
  attachSteps,
  type Claim,
  type CommandReply,
  type IdempotencyRecord,
  toNextOwnersSteps,
} from './record.js'

/** What a run that claims nothing is looked for with. */
export type Looking = Pick<Claim, 'token' | 'fingerprint' | 'unknownOutcome'>

/** The reply to `look`: what `begin` would reply, though nothing was claimed. */
export type Looked = Free | { readonly acquired: false; readonly record: IdempotencyRecord }

/** The key can be taken. */
export interface Free extends Acquired {
  /** Names the state that the look has found, for the store alone, when the transaction enters: `null` if it was no record. */
  readonly seen: string | null
}

/** The reply to `fence`. */
export interface Fenced {
  /** A transaction holds the key: nothing else is known. */
  readonly isTaken: boolean
  readonly record: IdempotencyRecord | null
  /** Whether the record has the token that was asked for: the transaction of that run was committed. */
  readonly isOwn: boolean
}

export interface Entry {
  readonly token: string
  /** From the look, as the following ones: the key is taken only if they still hold. */
  readonly seen: string | null
  readonly attempt: number
  /** Whether the outcome of an earlier attempt is unknown. */
  readonly uncertain: boolean
  /** How long the session may be inactive before the database ends it, in milliseconds. */
  readonly idleMs: number
}

/**
 * - `entered`: the key is this transaction's until it ends.
 * - `locked`: another transaction holds the key, or looks at it for an instant; no record prevents this one.
 * - `taken`: a record prevents it, or the state is another one than the look has shown.
 */
export type Entered = 'entered' | 'locked' | 'taken'

/** What a record is failed with whose run has answered with a success without a transaction. */
export interface Withheld extends Pick<Entry, 'token' | 'seen' | 'attempt'> {
  readonly scope: string
  readonly fingerprint: string
  readonly retentionMs: number
}

export function look(stored: StoredRecord | null, looking: Looking, now: number): Looked {
  const { reply } = begin(stored, { ...looking, scope: '', leaseMs: 1, retentionMs: 1 }, now)
  if (!reply.acquired) return reply
  const { acquired, attempt, previousOutcome } = reply
  return { acquired, attempt, previousOutcome, seen: stored !== null && now < stored.expiresAt ? stored.token : null }
}

/** Whether a transaction may take the key: only from the state that the look has shown. */
export function enter(stored: StoredRecord | null, { token, seen, attempt, uncertain }: Entry, now: number): Entered {
  // With the record's own fingerprint: the look has compared it, and a token keeps its fingerprint.
  const fingerprint = stored?.fingerprint ?? ''
  const found = look(stored, { token, fingerprint, unknownOutcome: 'rerun' }, now)
  if (!found.acquired || found.seen !== seen || found.attempt !== attempt) return 'taken'
  return (found.previousOutcome === 'unknown') === uncertain ? 'entered' : 'taken'
}

/** A success without a transaction leaves its record failed and uncertain, where no other attempt has changed it since the look. */
export function withhold(stored: StoredRecord | null, own: Withheld, now: number): Change<CommandReply> {
  const { token, fingerprint, seen, attempt, retentionMs } = own
  const { record, reply } = peek(stored, now)
  if (record?.token === token) return { record, reply: { ok: true } }
  const found = look(record, { token, fingerprint: record?.fingerprint ?? '', unknownOutcome: 'rerun' }, now)
  if (!found.acquired || found.seen !== seen) return { record, reply: { ok: false, record: reply } }
  // As if the attempt had taken them over.
  const isUncertain = record !== null && record.state !== 'completed' && found.previousOutcome === 'unknown'
  const failed = {
    state: 'failed',
    token,
    fingerprint,
    attempt,
    uncertain: true,
    expiresAt: now + retentionMs,
  } as const
  return { record: attachSteps(failed, isUncertain ? toNextOwnersSteps(record.steps) : undefined), reply: { ok: true } }
}
