import type { Answer, Begun, Claim, Done, IdempotencyRecord, Own, Resolution } from './record.js'

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
 * - A store throws only when it does not know the outcome, cannot read the record, or is full. A record that it cannot
 *   read is never an absent one.
 * - `key` is the storage key, already encoded: treat it as opaque.
 *
 * `storeLaws` from `once-per-key/testing` checks what of this can be seen from outside. Not in the interface, on purpose:
 * get, set, delete, connect, close, locks. Who opened a client closes it.
 */
export interface Store {
  /** `'inside'`: the handler's effects commit together with the record, so an unconfirmed success is not sent. */
  readonly effects: 'outside' | 'inside'
  /** Claims the key, or shows the record that stands in the way. */
  begin(key: string, claim: Claim): Promise<Begun>
  /** Starts the owner's lease anew. */
  renew(key: string, own: Own & { readonly leaseMs: number }): Promise<Done>
  /** Ends the attempt with its answer. */
  complete(key: string, own: Own & { readonly answer: Answer }): Promise<Done>
  /** Ends the attempt as failed; a certain failure is kept for `failedMs` only, to fence its late commands. */
  release(key: string, own: Own & { readonly failedMs: number }): Promise<Done>
  /** Optional, for operators: the record as it stands. Changes nothing, neither lease nor retention. */
  inspect?(key: string): Promise<IdempotencyRecord | null>
  /** Optional, for operators: settles an unknown outcome by their word. Needs room no more than `complete` does. */
  resolve?(key: string, resolution: Resolution): Promise<Done>
  /** Optional: tells of what happens outside any command, such as an eviction. */
  observe?(listener: (event: StoreEvent) => void): void
}

/** What a store tells of itself. No keys, no bodies: only what an operator has to know. */
export type StoreEvent =
  /** A record that was still wanted was dropped to make room: its key is new again. */
  | { readonly type: 'evicted'; readonly state: 'completed' }
  /** The server may drop records by itself (`policy`; `null`: it does not say), and what to do about it. */
  | { readonly type: 'eviction_policy'; readonly policy: string | null; readonly advice: string }
