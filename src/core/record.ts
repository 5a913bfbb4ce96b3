/** A response as stored: what a retry is given back. */
export interface Answer {
  readonly status: number
  /** The reason phrase that the handler chose; empty for the status code's own. */
  readonly statusMessage: string
  /** Pairs rather than an object, so that two `Link` headers survive. */
  readonly headers: readonly (readonly [name: string, value: string])[]
  /** The bytes; `null`: the handler ran, but its answer was not kept. */
  readonly body: Uint8Array | null
}

/** What a store shows of the record that it keeps for one (scope, key). Never its token. */
export type IdempotencyRecord =
  | {
      readonly state: 'in-flight'
      /** `null`: a store that cannot see into a running transaction. */
      readonly fingerprint: string | null
      /** `null`: a store that cannot see into a running transaction. */
      readonly attempt: number | null
      readonly uncertain: boolean
      /** At most 0: the lease has lapsed. */
      readonly leaseRemainingMs: number
    }
  | {
      readonly state: 'completed'
      readonly fingerprint: string
      readonly attempt: number
      readonly answer: Answer
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
 * effect. `'unknown'`: one died, stalled, or failed after `mayHaveEffect()`; it may have had its effect.
 */
export type PreviousOutcome = 'none' | 'failed' | 'unknown'

/** Who asks for a key, and on what terms. */
export interface Claim {
  /** Random, new for each claim, chosen by the caller: a lost reply can be asked for again. */
  readonly token: string
  readonly fingerprint: string
  readonly leaseMs: number
  readonly retentionMs: number
  /** Whether a record with an unknown outcome may be claimed. */
  readonly unknownOutcome: 'rerun' | 'refuse'
}

/** What an owner shows of itself with each later command: enough to write its record anew if the store lost it. */
export interface Own {
  readonly token: string
  readonly fingerprint: string
  /** As `begin` told it; 0: the claim was never confirmed. */
  readonly attempt: number
  readonly uncertain: boolean
  readonly retentionMs: number
}

/** The reply to `begin`: the key, or the record that stood in the way. */
export type Begun =
  | {
      readonly acquired: true
      readonly attempt: number
      readonly previousOutcome: PreviousOutcome
      /** What a transactional store hands to the handler. */
      readonly context?: unknown
    }
  | { readonly acquired: false; readonly record: IdempotencyRecord }

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
export type Done = { readonly ok: true } | { readonly ok: false; readonly record: IdempotencyRecord | null }
