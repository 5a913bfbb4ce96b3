import type {
  Answer,
  BeginReply,
  Claim,
  CommandReply,
  IdempotencyRecord,
  ListedRecords,
  Ownership,
  Resolution,
} from './record.js'

/**
 * Where records are kept. Four commands, whose effect on a record is the machine's (see `machine.ts`, exported by
 * `once-per-key/core` as `machine`): a store that runs it atomically is right. Two more are for operators, and optional.
 *
 * Each command is ONE atomic step and, over a network, ONE round trip. Each may be sent twice (a lost reply, a client
 * that re-sends): the token makes the second harmless.
 *
 * - Durations go in, never times: the store's own clock decides, so that a skewed application server steals no lease.
 * - A record lives until its retention ends (`retentionMs`, or `failedMs` for a certain failure), counted from the
 *   command that last wrote it; then there is none.
 * - A store may reply at once or by a promise. Where it replies at once, nothing is waited for on the way of a request; a
 *   command that throws has failed like one whose promise rejects.
 * - A store throws only when it does not know the outcome, cannot read the record, or is full. A record that it cannot
 *   read is never an absent one.
 * - A completed record is shown without its answer, `answer: null`, to a command that comes with another fingerprint.
 * - `key` is the storage key, already encoded: treat it as opaque. `scope` is for a store with little room, which must not
 *   let one scope fill it for the others.
 *
 * `storeLaws` from `once-per-key/testing` checks what of this can be seen from outside. Not in the interface, on purpose:
 * get, set, delete, connect, close, locks. Who opened a client closes it.
 */
export interface Store {
  /** @deprecated A store of 0.1.0 says it. Of `'inside'`, an unconfirmed success is withheld, as `unconfirmedSuccess` can say. */
  readonly effects?: 'outside' | 'inside'
  /** Claims the key, or shows the record that stands in the way. */
  begin(key: string, claim: Claim): BeginReply | Promise<BeginReply>
  /** Starts the owner's lease anew. */
  renew(key: string, own: Ownership & { readonly leaseMs: number }): CommandReply | Promise<CommandReply>
  /** Ends the attempt with its answer. */
  complete(key: string, own: Ownership & { readonly answer: Answer }): CommandReply | Promise<CommandReply>
  /** Ends the attempt as failed; a certain failure is kept for `failedMs` only, to fence its late commands. */
  release(key: string, own: Ownership & { readonly failedMs: number }): CommandReply | Promise<CommandReply>
  /** Optional, for operators: the record as it stands. Changes nothing, neither lease nor retention. */
  inspect?(key: string): IdempotencyRecord | null | Promise<IdempotencyRecord | null>
  /** Optional, for operators: settles an unknown outcome by their word. Needs room no more than `complete` does. */
  resolve?(key: string, resolution: Resolution): CommandReply | Promise<CommandReply>
  /**
   * Optional, for operators: one bounded step through all that is kept. Answers with the records of the step whose outcome
   * is unknown, and where the next step goes on. `from`: `null` at first, then what the last step answered with. A record
   * that stands, and stays as it is, during the whole of a walk is listed at least once. Changes nothing.
   */
  list?(from: string | null): ListedRecords | Promise<ListedRecords>
  /** Optional: tells of what happens outside any command, such as an eviction. */
  observe?(listener: (event: StoreEvent) => void): void
  /** Optional, for a store around another one, such as one that seals what the other keeps. */
  readonly around?: Around
}

/** The store that another one is around, and what that makes of an answer. */
export interface Around {
  readonly store: Store
  /**
   * An answer as the inner store is given it: also where a transaction of the inner store completes the record. `key` and
   * `fingerprint` are the record's.
   */
  toKeep(key: string, fingerprint: string, answer: Answer): Answer
}

/** What a store tells of itself. No keys, no bodies: only what an operator has to know. */
export type StoreEvent =
  /** A record that was still wanted was dropped to make room: its key is new again. */
  | { readonly type: 'evicted'; readonly state: 'completed' | 'failed' }
  /** An answer was not kept for want of room: retries get 409 `answer_not_kept`, and nothing runs again. */
  | { readonly type: 'answer_dropped' }
  /** The server may drop records by itself (`policy`; `null`: it does not say), and what to do about it. */
  | { readonly type: 'eviction_policy'; readonly policy: string | null; readonly advice: string }
  /** Commands wait for a connection, since all of the pool's are in use; told every ten seconds at most. */
  | { readonly type: 'connections_exhausted'; readonly waiting: number; readonly advice: string }
  /** Expired records could not be removed. They count as none; but as long as it fails, the store grows. */
  | { readonly type: 'sweep_failed'; readonly error: { readonly code: string; readonly message: string } }
