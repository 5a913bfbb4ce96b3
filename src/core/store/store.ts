import { recognizeAcrossCopies } from '../errors.js'
import type { Fenced, Looked, Looking, Withheld } from '../record/looked.js'
import type {
  Answer,
  BeginReply,
  Claim,
  CommandReply,
  Forgetting,
  IdempotencyRecord,
  ListedRecords,
  Ownership,
  Resolution,
  StepChange,
} from '../record/record.js'

/**
 * Where records are kept. Four commands, whose effect on a record is defined by the machine (see `machine.ts`, exported
 * by `once-per-key/core` as `machine`): a store that runs the machine atomically is correct. Further ones are optional,
 * for operators.
 *
 * Each command is ONE atomic step. Over a network a first claim and a replay are best ONE round trip. Each command may be sent
 * twice (after a lost reply, or by a client that re-sends): because of the token the second has no effect.
 *
 * - Arguments are durations, never times: the store's own clock decides, so an application server with a wrong clock
 *   cannot take a lease.
 * - A record lives until its retention ends (`retentionMs`, or `failedMs` for a certain failure), counted from the
 *   command that last wrote it; then there is none.
 * - A store may reply synchronously or with a promise. If it is synchronous, requests never wait for it; a command that
 *   throws has failed like one whose promise rejects.
 * - A store throws only if it does not know the outcome, cannot read the record, or is full. It must never treat a
 *   record that it cannot read as absent.
 * - A command with another fingerprint gets a completed record without its answer, `answer: null`.
 * - `key` is the storage key, already encoded: treat it as opaque. `scope` is for a store with limited room, in which
 *   one scope must not take the room of others.
 *
 * `storeLaws` from `once-per-key/testing` checks everything of this that can be observed. Deliberately not in the
 * interface: get, set, delete, connect, close, locks. Whoever opened a client closes it.
 */
export interface Store {
  /**
   * Optional, for `sealed`: what tells the store's records from those of another such store, its prefix or schema. Seals are
   * bound to it, so it must not change while records are kept.
   */
  readonly place?: string
  /** Claims the key, or shows the record that prevents it. */
  begin(key: string, claim: Claim): BeginReply | Promise<BeginReply>
  /** Restarts the owner's lease. */
  renew(key: string, own: Ownership & { readonly leaseMs: number }): CommandReply | Promise<CommandReply>
  /** Ends the attempt with its answer. */
  complete(key: string, own: Ownership & { readonly answer: Answer }): CommandReply | Promise<CommandReply>
  /** Ends the attempt as failed; a certain failure is kept for `failedMs` only, to fence its late commands. */
  release(key: string, own: Ownership & { readonly failedMs: number }): CommandReply | Promise<CommandReply>
  /**
   * Optional, for `context.step`: records what became of a step of the operation, and renews the lease. Without it,
   * `context.step` is misuse, and everything else works. The bytes of results count towards the store's room; one for
   * which there is none is recorded as `null`, not kept.
   */
  step?(key: string, own: Ownership & StepChange & { readonly leaseMs: number }): CommandReply | Promise<CommandReply>
  /** Optional, for operators: the current record. Changes nothing, neither lease nor retention. */
  inspect?(key: string): IdempotencyRecord | null | Promise<IdempotencyRecord | null>
  /** Optional, for operators: settles an unknown outcome. Must work in a full store, as `complete` must. */
  resolve?(key: string, resolution: Resolution): CommandReply | Promise<CommandReply>
  /**
   * Optional, for operators: one bounded step through all records. Returns the records of the step with an unknown
   * outcome, and the start of the next step. `from`: `null` at first, then the last step's result. A record that does not
   * change during the whole walk is listed at least once. Changes nothing.
   */
  list?(from: string | null): ListedRecords | Promise<ListedRecords>
  /**
   * Optional, for operators: drops the answer of a record whose outcome is known, or the record itself. Keeps its owner
   * and the rest of its retention. Must work in a full store.
   */
  forget?(key: string, forgetting: Forgetting): CommandReply | Promise<CommandReply>
  /**
   * Optional, for operators: one bounded step through the records whose storage key begins with `scope` and a colon, as
   * `list` makes one. Shows all of them, without their answers: `answer: null`, unless nothing of it is kept.
   */
  listScope?(scope: string, from: string | null): ListedRecords | Promise<ListedRecords>
  /**
   * Optional, for `effects: 'in-transaction'`: the commands of runs that claim nothing beforehand. The store's `transaction` then
   * takes the key itself: see `Transactions.enter` and `finish`. `undefined`: this store cannot.
   */
  readonly unclaimed?: Unclaimed | undefined
  /**
   * Optional: reports what happens outside any command, for example an eviction. `storeTimeoutMs`: how long the engine that listens waits
   * for a reply. After that a claim is worth nothing, and is sent no more.
   */
  observe?(listener: (event: StoreEvent) => void, storeTimeoutMs?: number): void
  /** Optional, for a store that wraps another one, for example one that seals its answers. */
  readonly around?: Around
}

/**
 * The commands of runs that claim nothing. Each is one step; what it finds or does is `machine.look`, `machine.enter` and
 * `machine.withhold`. The *lock* of a key is what a transaction holds from its `enter` to its end.
 */
export interface Unclaimed {
  /** Whether the key can be taken. Changes nothing. */
  look(key: string, looking: Looking): Looked | Promise<Looked>
  /**
   * Whether a transaction holds the key and, if none does, the record as it is *after* that was found: a record that was read before
   * could be the past. Changes nothing, and does not wait.
   */
  fence(key: string, asker: Pick<Looking, 'token' | 'fingerprint'>): Fenced | Promise<Fenced>
  /**
   * Leaves a failed, uncertain record if no other attempt has changed the key since the look, under the lock. Not ok with
   * `record: null`: a transaction holds the key.
   */
  withhold(key: string, own: Withheld): CommandReply | Promise<CommandReply>
}

/** The commands of a run, and their replies. */
export interface OwnersReply {
  readonly begin: BeginReply
  readonly renew: CommandReply
  readonly complete: CommandReply
  readonly release: CommandReply
}

export type OwnersCommand = keyof OwnersReply

/** The arguments of a run's commands, on one object. */
export interface SentOperation {
  /** The first argument of the four commands. */
  readonly recordKey: string
  readonly token: string
  /** The storage scope: `Claim.scope`. */
  readonly scope: string
  readonly fingerprint: string
  /** As returned by `begin`; 0: the claim was never confirmed. */
  readonly attempt: number
  readonly uncertain: boolean
  /** For `complete`. */
  readonly answer: Answer | null
  /** For `release`, in place of the operation's own `uncertain`. */
  readonly failure: { readonly uncertain: boolean } | null
  readonly terms: SentTerms
}

/** The arguments that all operations of an engine share. */
export interface SentTerms {
  /** For `begin` and `renew`. */
  readonly leaseMs: number
  /** For `complete`. */
  readonly retentionMs: number
  /** The `retentionMs` of `begin`, `renew` and `release`: of a record without a known outcome. */
  readonly unknownRetentionMs: number
  /** For `release`. */
  readonly failedMs: number
  /** For `begin`. */
  readonly unknownOutcome: 'rerun' | 'refuse'
}

/** The wrapped store, and how the wrapper changes an answer. */
export interface Around {
  readonly store: Store
  /**
   * An answer as the inner store receives it, also if a transaction of the inner store completes the record. `key` and
   * `fingerprint` are the record's.
   */
  toKeep(key: string, fingerprint: string, answer: Answer): Answer
  /** The same for the result of a step that a transaction of the inner store records. @default it is not changed */
  resultToKeep?(key: string, fingerprint: string, label: string, result: Uint8Array): Uint8Array
  /** The result of a step that `resultToKeep` has changed. @default it is not changed */
  resultToShow?(key: string, fingerprint: string, label: string, kept: Uint8Array): Uint8Array
}

/** What a store reports about itself. No keys and no bodies. */
export type StoreEvent =
  /** A record was dropped before it expired, to make room: its key is new again. */
  | { readonly type: 'evicted'; readonly state: 'completed' | 'failed' }
  /** An answer was not kept because there was no room: retries get 409 `answer_not_kept`, and nothing runs again. */
  | { readonly type: 'answer_dropped' }
  /** The server may drop records itself (`policy`; `null`: unknown), and what to do about it. */
  | { readonly type: 'eviction_policy'; readonly policy: string | null; readonly advice: string }
  /** Commands wait for a connection because all of the pool's are in use; reported at most every ten seconds. */
  | { readonly type: 'connections_exhausted'; readonly waiting: number; readonly advice: string }
  /** Expired records could not be removed. They are ignored, but the store grows until it succeeds. */
  | { readonly type: 'sweep_failed'; readonly error: { readonly code: string; readonly message: string } }

/** Whether `store` keeps its records in `inner`: it is the same store, or wraps it. */
export function isKeptIn(store: Store, inner: Store): boolean {
  if (store === inner) return true
  return store.around !== undefined && isKeptIn(store.around.store, inner)
}

type StepResultReference = Pick<SentOperation, 'recordKey' | 'fingerprint'> & Pick<StepChange, 'label'>

/** The result of a step as the innermost store receives it. */
export function toKeptResult({ around }: Store, of: StepResultReference, result: Uint8Array): Uint8Array {
  if (around === undefined) return result
  const kept = around.resultToKeep?.(of.recordKey, of.fingerprint, of.label, result) ?? result
  return toKeptResult(around.store, of, kept)
}

/** The other way round. */
export function toShownResult({ around }: Store, of: StepResultReference, kept: Uint8Array): Uint8Array {
  if (around === undefined) return kept
  const inner = toShownResult(around.store, of, kept)
  return around.resultToShow?.(of.recordKey, of.fingerprint, of.label, inner) ?? inner
}

/** An answer as the innermost store receives it. */
export function toKeptAnswer(store: Store, key: string, fingerprint: string, answer: Answer): Answer {
  const { around } = store
  return around === undefined
    ? answer
    : toKeptAnswer(around.store, key, fingerprint, around.toKeep(key, fingerprint, answer))
}

/**
 * What went wrong between a store and its database. Each store has a class of its own over it, with a closed set of codes. The message
 * contains no key and no body.
 *
 * @example
 * class FileStoreError extends StoreError<'file_full' | 'file_failed'> {
 *   override readonly name = 'FileStoreError'
 * }
 */
export abstract class StoreError<Code extends string = string> extends Error {
  readonly code: Code

  constructor(code: Code, message: string, options?: { readonly cause?: unknown }) {
    super(message, options)
    this.code = code
  }
}
recognizeAcrossCopies(StoreError, 'StoreError')
