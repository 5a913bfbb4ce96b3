import { describeKind } from '../errors.js'
import type { EngineEvent } from '../events/events.js'
import type { Answer } from '../record/record.js'
import type { Store } from '../store/store.js'
import { aFunction, anInteger, type Fault, type OptionTable, oneOf, resolveOptions } from '../validation.js'

/** The options of an engine, which runs an operation once. All durations are integers, in milliseconds. */
export interface EngineOptions {
  /** Where records are kept, such as `new MemoryStore()` for one process. */
  readonly store: Store

  /**
   * How long an owner may be silent before another may take over. Renewed while the handler runs, so it does not bound
   * the handler. At least 4 × `storeTimeoutMs`.
   * @default 30_000: a crash blocks the key for half a minute; a garbage collection costs nothing
   */
  readonly leaseMs?: number | undefined

  /**
   * How long the lease is renewed if a handler does not end. At least `leaseMs`.
   * @default 900_000 (15 minutes): longer than any proxy keeps a request open
   */
  readonly maxRunMs?: number | undefined

  /**
   * How long a completed record is kept. At least `maxRunMs + leaseMs`. After it the key is new, but `deriveKey` still
   * returns the same UUIDs: another service that remembers them for longer then repeats its first response.
   * @default 86_400_000 (24 hours): common among payment APIs
   */
  readonly retentionMs?: number | undefined

  /**
   * How long a record with an unknown outcome is kept. After it the key is new: a retry runs with `previousOutcome:
   * 'none'`. At least `maxRunMs + leaseMs`.
   * @default 86_400_000 (24 hours), or the value of `retentionMs`
   */
  readonly unknownRetentionMs?: number | undefined

  /**
   * How far the clock behind `firstSent` may differ from this machine's: an operation is refused with `key_expired`
   * once it is older than the smaller of `retentionMs` and `unknownRetentionMs`, less this. Less than both of them.
   * @default 300_000 (5 minutes): as for signatures with a timestamp
   */
  readonly clockSkewMs?: number | undefined

  /**
   * How long a duplicate waits for the owner's answer before it is refused with `in_flight`. At most `maxRunMs`. At
   * most 1,000 duplicates wait at a time, and a scope takes at most as many places as are still free.
   * @default 0: a waiting request holds a connection, and the client can wait instead
   */
  readonly inFlightWaitMs?: number | undefined

  /**
   * `Retry-After` of `store_unavailable`, and at first of `in_flight`, rounded up to seconds. That of `in_flight` grows
   * to 8 s as the owner's lease passes, and starts again with each renewal. After a missed renewal it is the rest of the
   * lease.
   * @default 1_000: most handlers have ended by then
   */
  readonly retryAfterMs?: number | undefined

  /**
   * What a retry gets if an earlier attempt may have had its effect. `'rerun'`: the handler runs with `previousOutcome:
   * 'unknown'`. `'refuse'`: 409 `outcome_unknown`, until `unknownRetentionMs` has passed: then the key is new, and a
   * retry runs.
   * @default 'rerun': most clients need a retry after a crash
   */
  readonly unknownOutcome?: 'rerun' | 'refuse' | undefined

  /**
   * Where effects may come from. `'assumed'`: anywhere in a handler, so only a refusal certainly has none.
   * `'declared'`: only after `mayHaveEffect()`, which each handler must call before its irrevocable step; a failure
   * without that call is certain, also by an error of another service. `'in-transaction'`: only inside the
   * `transaction` of a Postgres, MySQL or SQLite store. Nothing is claimed before it. A success without it is withheld
   * and leaves the outcome unknown (500 `transaction_missing`).
   * @default 'assumed': a forgotten call must not lead to a second payment
   */
  readonly effects?: 'assumed' | 'declared' | 'in-transaction' | undefined

  /**
   * What the client gets if the store does not confirm a success in time. `'send'`: its answer; the completion is
   * retried in the background. If the store stays away until the lease ends, another process may send a second success.
   * `'withhold'`: 503 `store_unavailable`; a retry gets the answer once it is stored. A run that no claim protects sends it.
   * @default 'send': the operation was carried out, and its client should know
   */
  readonly unconfirmedSuccess?: 'send' | 'withhold' | undefined

  /**
   * The time limit of a command to the store.
   * @default 2_000: a hundred times a slow round trip
   */
  readonly storeTimeoutMs?: number | undefined

  /**
   * The largest result of a step that is kept, in bytes.
   * @default 65_536 (64 KiB): an id and a status are enough to go on
   */
  readonly maxStepBytes?: number | undefined

  /**
   * What happens if the store cannot confirm a claim. `'refuse'`: 503 `store_unavailable`. `'runUnprotected'`: the
   * handler runs, with an event, and a retry may run it again; a waiting duplicate (`inFlightWaitMs`) is still refused.
   * @default 'refuse': a late payment is better than a double payment
   */
  readonly storeFailure?: 'refuse' | 'runUnprotected' | undefined

  /**
   * Receives an event for everything that happens. A listener that throws changes nothing.
   * @default none: the process prints its warnings
   */
  readonly onEvent?: ((event: EngineEvent) => void) | undefined

  /**
   * Checks an answer in a record: returns `null` if it can be sent, else what was expected. A record whose answer
   * cannot be sent is damaged, which counts as a store failure.
   * @default none: every answer is valid
   */
  readonly answerFault?: ((answer: Answer) => string | null) | undefined
}

type Optional = 'onEvent' | 'answerFault'

export type ResolvedEngineOptions = Resolved<Omit<EngineOptions, Optional>> & Pick<EngineOptions, Optional>

/** Options with their defaults in place of what was absent, or `undefined`. */
export type Resolved<Options> = { readonly [Name in keyof Options]-?: Exclude<Options[Name], undefined> }

/** The options that say how long an operation may be repeated. */
export type RepeatOptions = Pick<ResolvedEngineOptions, 'retentionMs' | 'unknownRetentionMs' | 'clockSkewMs'>

/** For so long after it was first sent, the record of an operation is certainly there. */
export function computeLongestRepeatMs({ retentionMs, unknownRetentionMs, clockSkewMs }: RepeatOptions): number {
  return Math.min(retentionMs, unknownRetentionMs) - clockSkewMs
}

/**
 * Reads the options once, at construction.
 *
 * @throws IdempotencyError `options_invalid`, which lists every mistake; nothing was built.
 */
export function resolveEngineOptions(given: EngineOptions): ResolvedEngineOptions {
  const { findConflicts: _, ...clockSkewMs } = engineOptions.clockSkewMs // It is compared at a claim that uses it.
  const table = { ...engineOptions, clockSkewMs }
  const options = resolveOptions<ResolvedEngineOptions>('createOperationEngine()', given, table)
  return Object.freeze({ ...options, unknownRetentionMs: options.unknownRetentionMs ?? options.retentionMs })
}

/** The longest delay of a timer: Node fires longer ones immediately. */
const MAX_TIMER_MS = 2 ** 31 - 1

const createTimerRule = (least: number) => anInteger(least, MAX_TIMER_MS)

/** The options of an engine, for a table of your own whose options include them. */
export const engineOptions = {
  store: { rule: findStoreFault, isRequired: true },
  leaseMs: { rule: createTimerRule(1), default: 30_000, findConflicts: findDurationConflicts },
  maxRunMs: { rule: createTimerRule(1), default: 15 * 60_000 },
  retentionMs: { rule: anInteger(1, 2 ** 52), default: 24 * 3_600_000 },
  unknownRetentionMs: anInteger(1, 2 ** 52),
  clockSkewMs: { rule: anInteger(0, 2 ** 52), default: 5 * 60_000, findConflicts: findSkewConflicts },
  inFlightWaitMs: { rule: createTimerRule(0), default: 0 },
  retryAfterMs: { rule: createTimerRule(0), default: 1_000 },
  unknownOutcome: { rule: oneOf('rerun', 'refuse'), default: 'rerun' },
  effects: {
    rule: oneOf('assumed', 'declared', 'in-transaction'),
    default: 'assumed',
    findConflicts: findModeConflicts,
  },
  unconfirmedSuccess: { rule: oneOf('send', 'withhold'), default: 'send' },
  storeTimeoutMs: { rule: createTimerRule(1), default: 2_000 },
  maxStepBytes: { rule: anInteger(0, 2 ** 30), default: 65_536 },
  storeFailure: { rule: oneOf('refuse', 'runUnprotected'), default: 'refuse' },
  onEvent: aFunction,
  answerFault: aFunction,
} as const satisfies OptionTable<ResolvedEngineOptions>

/** As it is exported: without the types of its rules, which are no types of the package. */
export const engineOptionTable: OptionTable<EngineOptions> = engineOptions

function findModeConflicts({ store, effects, storeFailure }: ResolvedEngineOptions): string[] {
  const mistakes: string[] = []
  if (effects !== 'in-transaction') return mistakes
  if (store !== undefined && store.unclaimed === undefined) {
    mistakes.push(
      "effects: 'in-transaction' needs a store whose transactions take the key: PostgresStore or MySqlStore with the option " +
        '`transactions`, or SqliteStore. With any other store leave it out: the key is claimed before the handler runs',
    )
  }
  if (storeFailure === 'runUnprotected') {
    mistakes.push(
      "storeFailure: 'runUnprotected' contradicts effects: 'in-transaction': without the store there is no transaction. Leave it out",
    )
  }
  return mistakes
}

/** Where one of two is `undefined`, because it is wrong by itself, neither is less. */
function findDurationConflicts(options: ResolvedEngineOptions): string[] {
  const { leaseMs, maxRunMs, storeTimeoutMs, inFlightWaitMs } = options
  const mistakes: string[] = []
  const atLeast = (name: Duration, bound: string, boundMs: number, why: string, wayOut: string): void => {
    const ms = options[name]
    if (ms < boundMs) {
      const raise = buildSecondsHint(name, ms, boundMs) ?? 'Raise'
      mistakes.push(`${name}: ${ms} is less than ${bound} = ${boundMs}: ${why}. ${raise} ${name}, or ${wayOut}`)
    }
  }
  const lower = `lower storeTimeoutMs to ${Math.max(1, Math.floor(leaseMs / 4))}`
  const notInTime = 'a failed renewal could not be retried in time'
  atLeast('leaseMs', '4 × storeTimeoutMs', 4 * storeTimeoutMs, notInTime, lower)
  atLeast('maxRunMs', 'leaseMs', leaseMs, 'a run lasts at least one lease', 'lower leaseMs')
  for (const name of ['retentionMs', 'unknownRetentionMs'] as const) {
    atLeast(name, 'maxRunMs + leaseMs', maxRunMs + leaseMs, 'a record must outlive its run', 'lower maxRunMs')
  }
  atLeast('maxRunMs', 'inFlightWaitMs', inFlightWaitMs, 'no run lasts longer', 'lower inFlightWaitMs')
  return mistakes
}

type Duration = 'leaseMs' | 'maxRunMs' | 'retentionMs' | 'unknownRetentionMs'

/** It matters only where `firstSent` is compared: the default need not fit, unless an option says that it is. */
function findSkewConflicts(
  options: ResolvedEngineOptions & { readonly firstSent?: unknown },
  given: Partial<EngineOptions>,
): string[] {
  const { clockSkewMs, retentionMs, unknownRetentionMs = retentionMs, firstSent } = options
  const leastMs = Math.min(retentionMs, unknownRetentionMs)
  if (!(clockSkewMs >= leastMs) || (given.clockSkewMs ?? firstSent) === undefined) return []
  return [`clockSkewMs: ${clockSkewMs} is not less than the retention, ${leastMs}: every operation would have expired`]
}

/** Many libraries have seconds: nobody keeps a record for 86 of them, and a value above an hour is no lease. */
function buildSecondsHint(name: Duration, given: number, leastMs: number): string | null {
  const isPlausible = given * 1_000 >= leastMs && (name.endsWith('etentionMs') || given <= MOST_SECONDS)
  return isPlausible ? `If these are seconds, write ${name}: ${toGroupedDigits(given * 1_000)}. Otherwise raise` : null
}

const MOST_SECONDS = 3_600

/** As one writes it in code: 86_400_000. */
function toGroupedDigits(value: number): string {
  return String(value).replace(/\B(?=(?:\d{3})+$)/g, '_')
}

function findStoreFault(value: unknown): string | Fault | null {
  const store = value as Partial<Store> | null | undefined
  const commands = [store?.begin, store?.renew, store?.complete, store?.release]
  if (commands.every((command) => typeof command === 'function')) return null
  const expected = "a store, such as new MemoryStore() from 'once-per-key/memory'"
  const wayOut = findStoreHint(value)
  return wayOut === null ? expected : { expected, seen: `${describeKind(value)}. ${wayOut}` }
}

/** What to write for a client, a class or a promise that was given as the store; `null`: it is none of these. */
function findStoreHint(value: unknown): string | null {
  const has = (...methods: readonly string[]) => methods.every((method) => typeof Object(value)[method] === 'function')
  if (typeof value === 'function' && typeof value.prototype?.begin === 'function') {
    return `It is the class: write store: new ${value.name}(…)`
  }
  if (has('then')) return 'Await it first'
  if (has('evalsha') || has('evalSha') || has('sendCommand'))
    return buildClientHint('Redis', 'RedisStore', 'client', 'redis')
  if (has('prepare', 'exec')) return buildClientHint('SQLite', 'SqliteStore', 'database', 'sqlite')
  if (has('getConnection', 'query')) return buildClientHint('MySQL', 'MySqlStore', 'pool', 'mysql')
  if (has('connect', 'query')) return buildClientHint('Postgres', 'PostgresStore', 'pool', 'postgres')
  return null
}

function buildClientHint(database: string, store: string, option: string, entry: string): string {
  return `It is a client of ${database}: write store: new ${store}({ ${option} }), from 'once-per-key/${entry}'`
}
