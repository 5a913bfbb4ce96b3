import { Buffer } from 'node:buffer'

/** A response as stored: what a retry gets. */
export interface Answer {
  readonly status: number
  /** The reason phrase of the handler; empty for the status code's default, one blank for none at all. */
  readonly statusMessage: string
  /** Pairs rather than an object, so that two `Link` headers survive. */
  readonly headers: readonly (readonly [name: string, value: string])[]
  /** The bytes; `null`: the handler ran, but its answer was not kept. */
  readonly body: Uint8Array | null
}

/** An answer in a convenient form, for an operator or for completing a record by hand. */
export interface GivenAnswer {
  /** A success: 200 to 399 except 307 and 308. */
  readonly status: number
  /** A string or bytes unchanged; an object or an array as JSON, with its content type. If absent, an empty body. */
  readonly body?: string | Uint8Array | object | undefined
  /** Only those are kept that would be kept from a handler. Content-Length is added. */
  readonly headers?: Readonly<Record<string, string | readonly string[]>> | undefined
}

/**
 * The answer argument of a store's `completeIn`: an answer or, with a type argument, a runner's result. Nothing is
 * inferred from the value.
 */
export type GivenByHand<Given> = [Given][Given extends unknown ? 0 : never]

/** The record of one (scope, key) as a store shows it. Never contains its token. */
export type IdempotencyRecord =
  | {
      readonly state: 'in-flight'
      readonly fingerprint: string
      readonly attempt: number
      readonly uncertain: boolean
      /** At most 0: the lease has lapsed. */
      readonly leaseRemainingMs: number
      /** Only from `inspect`: the steps that began, if any; never their results. */
      readonly steps?: readonly ShownStep[]
    }
  | {
      readonly state: 'completed'
      readonly fingerprint: string
      readonly attempt: number
      /**
       * `null`: not shown, because the command had another fingerprint, or is one that shows none. An answer that was
       * not kept is one without a body.
       */
      readonly answer: Answer | null
    }
  | {
      readonly state: 'failed'
      /** The bound fingerprint while uncertain, else `null`. */
      readonly fingerprint: string | null
      readonly attempt: number
      readonly uncertain: boolean
      /** Only from `inspect`: as above. */
      readonly steps?: readonly ShownStep[]
      /** Only from `inspect`: an operator lets the next attempt go on, even under `unknownOutcome: 'refuse'`. */
      readonly rerun?: true
    }

/** A step as operators see it. */
export type ShownStep = Pick<Step, 'label' | 'state'>

/** A step of an operation that earlier attempts began, and did not take back. */
export interface Step {
  readonly label: string
  /** `'begun'`: it may have had its effect, and left no result. */
  readonly state: 'begun' | 'done'
  /** The bytes of its result. `null`: it has not ended, or its result was not kept. */
  readonly result: Uint8Array | null
}

/** What an owner says of a step. */
export interface StepChange {
  readonly label: string
  /**
   * 1, 2, 3 … among the changes of one owner: one that arrives after a later one for the same label changes nothing.
   */
  readonly order: number
  /** `'undone'`: its beginning is taken back, since it certainly had no effect. */
  readonly state: 'begun' | 'done' | 'undone'
  /** Of `'done'`; `null`: not kept. */
  readonly result: Uint8Array | null
}

/**
 * How the attempts before this one ended. `'none'`: there was none. `'failed'`: all failed, certainly without effect.
 * `'unknown'`: one died, stalled, or failed and may have had its effect.
 */
export type PreviousOutcome = 'none' | 'failed' | 'unknown'

/** A request for a key, with its terms. */
export interface Claim {
  /** Random, new for each claim, chosen by the caller, so that the command can be repeated after a lost reply. */
  readonly token: string
  /** The owner of the record: stores share their room by it. */
  readonly scope: string
  readonly fingerprint: string
  readonly leaseMs: number
  readonly retentionMs: number
  /** Whether a record with an unknown outcome may be claimed. */
  readonly unknownOutcome: 'rerun' | 'refuse'
}

/** What an owner sends with each later command: enough to write its record again if the store lost it. */
export interface Ownership {
  readonly token: string
  readonly scope: string
  readonly fingerprint: string
  /** As returned by `begin`; 0: the claim was never confirmed. */
  readonly attempt: number
  readonly uncertain: boolean
  readonly retentionMs: number
}

/** The key was acquired. Says how the attempts before ended. */
export type Acquired = {
  readonly acquired: true
  readonly attempt: number
  readonly previousOutcome: PreviousOutcome
  /** The steps that earlier attempts recorded, or, of a claim that is repeated, this one; absent if there are none. */
  readonly steps?: readonly Step[]
}

/** The reply to `begin`: the key, or the record that prevented the claim. */
export type BeginReply = Acquired | { readonly acquired: false; readonly record: IdempotencyRecord }

/** An operator's decision on an unknown outcome. */
export interface Resolution {
  /**
   * Random, new for each resolution, so that the command can be repeated after a lost reply, and nobody else owns the
   * record.
   */
  readonly token: string
  /** The attempt that the operator inspected: a later one must not be resolved by what was seen of it. */
  readonly attempt: number
  /** The answer to keep; `null`: it failed, certainly without effect, unless `rerun`. */
  readonly answer: Answer | null
  /**
   * It stays unknown, and the next claim with its fingerprint goes on with its steps, even with `unknownOutcome:
   * 'refuse'`. Its `answer` is `null`.
   */
  readonly rerun?: boolean
  /** The minimum time for which the record is kept. */
  readonly retentionMs: number
}

/** What an operator drops: the answer of a record, or the record. */
export interface Forgetting {
  /**
   * The record that the operator looked at, by its state, attempt and fingerprint: another one, such as one that was
   * claimed meanwhile, must stay unchanged.
   */
  readonly state: 'completed' | 'failed'
  readonly attempt: number
  readonly fingerprint: string | null
  /** Whether the whole record is dropped: then the key is new. If not, only its answer. */
  readonly removes: boolean
}

/**
 * The reply to `renew`, `complete`, `release`, `step`, `resolve` and `forget`. Not ok means *stale*; `record` is the record
 * that the command found, unchanged. `restored`, of `renew` and `step`: there was no record, so the owner's steps (but
 * the one that was sent) are missing in the one that it wrote; its owner sends them again.
 */
export type CommandReply =
  | { readonly ok: true; readonly restored?: true }
  | { readonly ok: false; readonly record: IdempotencyRecord | null }

export interface ListedRecord {
  /** The storage key. */
  readonly key: string
  readonly record: IdempotencyRecord
  /** The rest of its retention: the oldest record has the least. */
  readonly retentionRemainingMs: number
}

/** The result of one step of a store's `list` or `listScope`. */
export interface ListedRecords {
  /** Of `list`: those with an unknown outcome: in flight with a lapsed lease, or failed and uncertain. */
  readonly records: readonly ListedRecord[]
  /** The start of the next step; `null` after the last. */
  readonly next: string | null
  /** Of `listScope`: the storage keys of records that the step could not read; absent if there are none. */
  readonly unreadable?: readonly string[]
}

/** In place of an answer that was not kept, when nothing of it is. */
export const NOT_KEPT: Answer = Object.freeze({
  status: 200,
  statusMessage: '',
  headers: Object.freeze([]),
  body: null,
})

/** Whether nothing of the answer is kept, neither body nor headers. */
export function isNotKept(answer: Answer): boolean {
  // The body last: a store may copy it for each reader.
  return answer.statusMessage === '' && answer.headers.length === 0 && answer.body === null
}

export function isSameAnswer(a: Answer, b: Answer): boolean {
  const hasSameHead =
    JSON.stringify([a.status, a.statusMessage, a.headers]) === JSON.stringify([b.status, b.statusMessage, b.headers])
  return hasSameHead && (a.body === null || b.body === null ? a.body === b.body : Buffer.compare(a.body, b.body) === 0)
}

/** A step of a record, as the machine keeps it. The functions below are pure, like the machine. */
export interface StoredStep {
  readonly label: string
  readonly state: StepChange['state']
  /** Of the record's owner; 0: an earlier owner recorded it, so each change of the owner's follows it. */
  readonly order: number
  readonly result: Uint8Array | null
}

/** Most records have none. */
export type StoredSteps = readonly StoredStep[] | undefined

/** A record, or a reply, with its steps; itself if there are none, so that nothing is allocated for them. */
export function attachSteps<Each extends object, OfStep>(
  each: Each,
  steps: readonly OfStep[] | undefined,
): Each & { readonly steps?: readonly OfStep[] } {
  return steps === undefined || steps.length === 0 ? each : { ...each, steps }
}

/**
 * The same steps with this change in them; `null`: a later one of the same owner has arrived before it, or the result is
 * recorded. A result is final: nobody who was told of it begins its step again, and what comes is late.
 */
export function changeStep(
  steps: StoredSteps,
  { label, order, state, result }: StepChange,
): readonly StoredStep[] | null {
  const before = steps?.find((step) => step.label === label)
  if (before !== undefined && before.order > order) return null
  if (before?.state === 'done') return null
  const step: StoredStep = { label, state, order, result: state === 'done' ? result : null }
  return before === undefined ? [...(steps ?? []), step] : (steps ?? []).map((each) => (each === before ? step : each))
}

/** What a next owner finds: what was taken back has never begun. */
export function toNextOwnersSteps(steps: StoredSteps): StoredSteps {
  return steps?.filter(({ state }) => state !== 'undone').map((step) => ({ ...step, order: 0 }))
}

/** As an owner is told them. */
export function toOwnersSteps(steps: StoredSteps): readonly Step[] | undefined {
  return steps?.flatMap(({ label, state, result }) => (state === 'undone' ? [] : [{ label, state, result }]))
}

/** As an operator is shown them. */
export function toShownSteps(steps: StoredSteps): readonly ShownStep[] | undefined {
  return toOwnersSteps(steps)?.map(({ label, state }) => ({ label, state }))
}
