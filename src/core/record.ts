/** A response as stored: what a retry is given back. */
export interface Answer {
  readonly status: number
  /** The reason phrase that the handler chose; empty for the status code's own, one blank for none at all. */
  readonly statusMessage: string
  /** Pairs rather than an object, so that two `Link` headers survive. */
  readonly headers: readonly (readonly [name: string, value: string])[]
  /** The bytes; `null`: the handler ran, but its answer was not kept. */
  readonly body: Uint8Array | null
}

/** An answer as people write it: an operator, or whoever completes a record by hand. */
export interface GivenAnswer {
  /** A success: 200 to 399 except 307 and 308. */
  readonly status: number
  /** A string or bytes as they are; an object or an array as JSON, with its content type. Absent: an empty body. */
  readonly body?: string | Uint8Array | object | undefined
  /** Of these, only what a handler's answer would keep. The length is counted. */
  readonly headers?: Readonly<Record<string, string | readonly string[]>> | undefined
}

/**
 * What `completeIn` of a store takes: an answer, or, where its type argument says so, the result of a runner's run. Nothing is
 * inferred from what is given.
 */
export type GivenByHand<Given> = [Given][Given extends unknown ? 0 : never]

/** What a store shows of the record that it keeps for one (scope, key). Never its token. */
export type IdempotencyRecord =
  | {
      readonly state: 'in-flight'
      readonly fingerprint: string
      readonly attempt: number
      readonly uncertain: boolean
      /** At most 0: the lease has lapsed. */
      readonly leaseRemainingMs: number
    }
  | {
      readonly state: 'completed'
      readonly fingerprint: string
      readonly attempt: number
      /** `null`: not shown, since the command came with another fingerprint. An answer that was not kept is one without a body. */
      readonly answer: Answer | null
    }
  | {
      readonly state: 'failed'
      /** Bound to its fingerprint only while uncertain, else `null`. */
      readonly fingerprint: string | null
      readonly attempt: number
      readonly uncertain: boolean
    }

/**
 * What became of the attempts before this one. `'none'`: there was none. `'failed'`: all failed, certainly without
 * effect. `'unknown'`: one died, stalled, or failed in a way that leaves its effect open.
 */
export type PreviousOutcome = 'none' | 'failed' | 'unknown'

/** Who asks for a key, and on what terms. */
export interface Claim {
  /** Random, new for each claim, chosen by the caller: a lost reply can be asked for again. */
  readonly token: string
  /** Whose the record is: what a store shares its room by. */
  readonly scope: string
  readonly fingerprint: string
  readonly leaseMs: number
  readonly retentionMs: number
  /** Whether a record with an unknown outcome may be claimed. */
  readonly unknownOutcome: 'rerun' | 'refuse'
}

/** What an owner shows of itself with each later command: enough to write its record anew if the store lost it. */
export interface Ownership {
  readonly token: string
  /** As in its claim. */
  readonly scope: string
  readonly fingerprint: string
  /** As `begin` told it; 0: the claim was never confirmed. */
  readonly attempt: number
  readonly uncertain: boolean
  readonly retentionMs: number
}

/** The key, and what became of the attempts before. */
export interface Acquired {
  readonly acquired: true
  readonly attempt: number
  readonly previousOutcome: PreviousOutcome
}

/** The reply to `begin`: the key, or the record that stood in the way. */
export type BeginReply = Acquired | { readonly acquired: false; readonly record: IdempotencyRecord }

/** An operator's word on an unknown outcome. */
export interface Resolution {
  /** Random, new for each resolution, as for a claim: a lost reply can be asked for again, and nobody else owns the record. */
  readonly token: string
  /** The attempt that the operator looked at: a later one is not resolved by what was seen of it. */
  readonly attempt: number
  /** The answer to keep; `null`: it failed, certainly without effect. */
  readonly answer: Answer | null
  /** How long the record is kept at least. */
  readonly retentionMs: number
}

/**
 * The reply to `renew`, `complete`, `release` and `resolve`. Not ok: *stale*, with the record that the command met, which
 * is as it was.
 */
export type CommandReply = { readonly ok: true } | { readonly ok: false; readonly record: IdempotencyRecord | null }

/** A record that a store's `list` came across. */
export interface ListedRecord {
  /** The storage key. */
  readonly key: string
  readonly record: IdempotencyRecord
  /** What is left of its retention: the oldest has the least. */
  readonly retentionRemainingMs: number
}

/** What one step of a store's `list` came across. */
export interface ListedRecords {
  /** Those whose outcome is unknown: in flight with a lease that lapsed, or failed and uncertain. */
  readonly records: readonly ListedRecord[]
  /** Where the next step goes on; `null`: that was the last. */
  readonly next: string | null
}

/** @deprecated The name of 0.1: `Ownership`. */
export type Own = Ownership
/** @deprecated The name of 0.1: `BeginReply`. */
export type Begun = BeginReply
/** @deprecated The name of 0.1: `CommandReply`. */
export type Done = CommandReply
