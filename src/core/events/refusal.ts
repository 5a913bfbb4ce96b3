import type { Identity } from '../record/identity.js'
import type { Answer, IdempotencyRecord } from '../record/record.js'

/**
 * Why an operation is not run: because of the existing record, or because the store does not reply. `transaction_missing`: it ran, with
 * `effects: 'in-transaction'`, and its success had no transaction.
 */
export type RefusalCode =
  | 'in_flight'
  | 'mismatched'
  | 'answer_not_kept'
  | 'outcome_unknown'
  | 'key_expired'
  | 'store_unavailable'
  | 'transaction_missing'

export interface Refused {
  readonly action: 'refuse'
  readonly code: RefusalCode
  /** After this time the client may retry; `null`: waiting does not help. */
  readonly retryAfterMs: number | null
  /** The operation may have been carried out: it ran, but its end could not be stored. */
  readonly mayHaveRun: boolean
}

export interface Replayed {
  readonly action: 'replay'
  readonly answer: Answer
  /** It is the answer of this same run, which completed its record by hand, inside a transaction. */
  readonly isOwn?: true
}

/** What to send after a run has ended: its own answer, or what the record says instead. */
export type RunEnd = { readonly action: 'send' } | Replayed | Refused

export const SEND: RunEnd = Object.freeze({ action: 'send' })

/** The engine's options that decide on a refusal; durations in milliseconds. */
interface RefusalOptions {
  readonly unknownOutcome: 'rerun' | 'refuse'
  readonly leaseMs: number
  readonly storeTimeoutMs: number
  readonly retryAfterMs: number
}

export type NotRun = Replayed | Refused

/** What the existing record means for an operation. */
export function explainNotRun(record: IdempotencyRecord, { fingerprint }: Identity, options: RefusalOptions): NotRun {
  const bound = record.state === 'failed' && !record.uncertain ? null : record.fingerprint
  if (bound !== null && bound !== fingerprint) return createRefusal('mismatched')
  switch (record.state) {
    case 'completed':
      if (record.answer === null) return createRefusal('mismatched') // The same fingerprint would get the answer.
      return record.answer.body === null
        ? createRefusal('answer_not_kept')
        : { action: 'replay', answer: record.answer }
    case 'in-flight':
      return record.leaseRemainingMs > 0 || options.unknownOutcome === 'rerun'
        ? createInFlightRefusal(record.leaseRemainingMs, options)
        : createRefusal('outcome_unknown')
    case 'failed':
      // A certain failure refuses only its own token: this claim was given up before its reply came.
      return record.uncertain ? createRefusal('outcome_unknown') : createUnavailableRefusal(options)
  }
}

/** The result for the client of a run that lost its lease: the answer if there is one, else to retry. */
export function explainLostRun(record: IdempotencyRecord | null, identity: Identity, options: RefusalOptions): NotRun {
  if (record?.state === 'completed') return explainNotRun(record, identity, options)
  return createInFlightRefusal(record?.state === 'in-flight' ? record.leaseRemainingMs : 0, options)
}

/** Tells the client to retry; the pause depends on the rest of the owner's lease. */
export function createInFlightRefusal(leaseRemainingMs: number, options: RefusalOptions): Refused {
  return createRefusal('in_flight', computeInFlightPauseMs(leaseRemainingMs, options))
}

/** The store gave no usable reply, and nothing was run. */
export function createUnavailableRefusal({ retryAfterMs }: Pick<RefusalOptions, 'retryAfterMs'>): Refused {
  return createRefusal('store_unavailable', retryAfterMs)
}

/** Sent to the client instead of a success that could not be stored. */
export function createUnconfirmedRefusal(options: Pick<RefusalOptions, 'retryAfterMs'>): Refused {
  return { ...createUnavailableRefusal(options), mayHaveRun: true }
}

/** A success that no transaction has, in the mode in which all effects are in one: what it did cannot be seen. */
export function createTransactionMissingRefusal(): Refused {
  return { ...createRefusal('transaction_missing'), mayHaveRun: true }
}

/** It was first sent so long ago that its record may be gone. */
export function createExpiredRefusal(): Refused {
  return createRefusal('key_expired')
}

export function isMismatch(notRun: NotRun): boolean {
  return notRun.action === 'refuse' && notRun.code === 'mismatched'
}

export function isInFlight(notRun: NotRun): boolean {
  return notRun.action === 'refuse' && notRun.code === 'in_flight'
}

function createRefusal(code: RefusalCode, retryAfterMs: number | null = null): Refused {
  return { action: 'refuse', code, retryAfterMs, mayHaveRun: false }
}

/** The longest pause while the owner renews: a client that has waited this long should rather ask again. */
const LONGEST_MS = 8_000

/**
 * In parts of the time to the next renewal: a duplicate that follows its owner this soon is part of a race, and most
 * races are short.
 */
const RACE = 0.05

/**
 * How long a client should wait after it found a record in flight, in milliseconds.
 *
 * An owner renews its lease every third of it, so the part that has passed tells two things. Up to a third: the owner
 * lives, and has run for at least that long. It may need several times as long, and the client may have only one or two
 * retries left, so the pause grows from `retryAfterMs`, fast at first. Beyond a third (plus the time limit of a
 * command): the owner has missed a renewal, and nothing will change before its lease ends.
 */
function computeInFlightPauseMs(
  leaseRemainingMs: number,
  { leaseMs, storeTimeoutMs, retryAfterMs }: RefusalOptions,
): number {
  const shortestMs = Math.max(1, Math.ceil(retryAfterMs / 1_000)) * 1_000
  if (leaseRemainingMs <= 0) return shortestMs
  const renewalMs = leaseMs / 3
  const passedMs = leaseMs - leaseRemainingMs
  if (passedMs > renewalMs + storeTimeoutMs) return leaseRemainingMs
  const growthMs = Math.max(0, LONGEST_MS - shortestMs) * Math.cbrt(partPassed(passedMs, renewalMs, storeTimeoutMs))
  const pauseMs = shortestMs + Math.floor(growthMs / 1_000) * 1_000
  return Math.min(pauseMs, Math.max(shortestMs, leaseRemainingMs))
}

/** In parts of the time to the next renewal, from 0 to 1. */
function partPassed(passedMs: number, renewalMs: number, storeTimeoutMs: number): number {
  // Longer than our lease: its owner has other options, so how much has passed is unknown.
  if (passedMs < -storeTimeoutMs) return 1
  const part = passedMs / renewalMs
  return part < RACE ? 0 : Math.min(1, part)
}
