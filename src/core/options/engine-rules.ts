import type { Store } from '../store.js'
import { ENGINE_DEFAULTS, type EngineOptions, type ResolvedEngineOptions } from './engine-options.js'
import { aFunction, anInteger, checkOptions, mistakesIn, oneOf, presentIn, type Rule } from './validation.js'

/**
 * Reads the options once, at construction.
 *
 * @throws IdempotencyError `options_invalid`, which lists every mistake; nothing was built.
 */
export function resolveEngineOptions(given: EngineOptions): ResolvedEngineOptions {
  const options = { ...ENGINE_DEFAULTS, ...(presentIn(given) as Pick<EngineOptions, 'store'>) }
  // `clockSkewMs` is compared at a claim that uses it.
  const more = mistakesInRelations({ unknownRetentionMs: undefined, ...options, clockSkewMs: undefined })
  checkOptions('createOperationEngine()', given, options, ENGINE_RULES, { required: ['store'], more })
  return Object.freeze({ unknownRetentionMs: options.retentionMs, ...options })
}

/**
 * All that is wrong with the options of an engine, a line each: for options that hold them, and refuse all mistakes in one error
 * (`more` of `checkOptions`).
 */
export function mistakesInEngineOptions(given: EngineOptions): string[] {
  const options = { unknownRetentionMs: undefined, ...ENGINE_DEFAULTS, ...presentIn(given) }
  return [
    ...mistakesIn(given, options, ENGINE_RULES, ['store']),
    ...mistakesInRelations({ ...options, clockSkewMs: given?.clockSkewMs }),
  ]
}

/** The longest delay of a timer: Node fires longer ones immediately. */
const MAX_TIMER_MS = 2 ** 31 - 1

export const ENGINE_RULES: Readonly<Record<keyof EngineOptions, Rule>> = {
  store: aStore,
  leaseMs: anInteger(1, MAX_TIMER_MS),
  maxRunMs: anInteger(1, MAX_TIMER_MS),
  retentionMs: anInteger(1, 2 ** 52),
  unknownRetentionMs: anInteger(1, 2 ** 52),
  clockSkewMs: anInteger(0, 2 ** 52),
  inFlightWaitMs: anInteger(0, MAX_TIMER_MS),
  retryAfterMs: anInteger(0, MAX_TIMER_MS),
  unknownOutcome: oneOf('rerun', 'refuse'),
  effects: oneOf('assumed', 'declared', 'in-transaction'),
  unconfirmedSuccess: oneOf('send', 'withhold'),
  storeTimeoutMs: anInteger(1, MAX_TIMER_MS),
  maxStepBytes: anInteger(0, 2 ** 30),
  storeFailure: oneOf('refuse', 'runUnprotected'),
  onEvent: aFunction,
  answerFault: aFunction,
}

type Duration =
  | 'leaseMs'
  | 'storeTimeoutMs'
  | 'maxRunMs'
  | 'retentionMs'
  | 'unknownRetentionMs'
  | 'clockSkewMs'
  | 'inFlightWaitMs'

/** Only valid values are compared with each other. `clockSkewMs` is `undefined` where nothing uses it. */
export function mistakesInRelations(options: Readonly<Record<Duration, number | undefined>> & Mode): string[] {
  return [...mistakesInDurations(options), ...mistakesInMode(options)]
}

type Mode = Partial<Pick<ResolvedEngineOptions, 'store' | 'effects' | 'storeFailure'>>

function mistakesInMode({ store, effects, storeFailure }: Mode): string[] {
  const mistakes: string[] = []
  if (effects !== 'in-transaction') return mistakes
  if (aStore(store) === null && store?.unclaimed === undefined) {
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

function mistakesInDurations(options: Readonly<Record<Duration, number | undefined>>): string[] {
  // Invalid values become NaN, so comparisons are false and no second mistake is reported.
  const ms = (name: Duration) => (ENGINE_RULES[name](options[name]) === null ? (options[name] as number) : Number.NaN)
  const mistakes: string[] = []
  const atLeast = (name: Duration, bound: string, boundMs: number, why: string, wayOut: string): void => {
    if (ms(name) < boundMs) {
      mistakes.push(`${name}: ${ms(name)} is less than ${bound} = ${boundMs}: ${why}. Raise ${name}, or ${wayOut}`)
    }
  }
  const [leaseMs, maxRunMs, retentionMs] = [ms('leaseMs'), ms('maxRunMs'), ms('retentionMs')]
  const unknownRetentionMs = Number.isNaN(ms('unknownRetentionMs')) ? retentionMs : ms('unknownRetentionMs')
  const leastRetentionMs = Math.min(retentionMs, unknownRetentionMs)
  const notInTime = 'a failed renewal could not be retried in time'
  const lower = `lower storeTimeoutMs to ${Math.max(1, Math.floor(leaseMs / 4))}`
  atLeast('leaseMs', '4 × storeTimeoutMs', 4 * ms('storeTimeoutMs'), notInTime, lower)
  atLeast('maxRunMs', 'leaseMs', leaseMs, 'a run lasts at least one lease', 'lower leaseMs')
  for (const name of ['retentionMs', 'unknownRetentionMs'] as const) {
    atLeast(name, 'maxRunMs + leaseMs', maxRunMs + leaseMs, 'a record must outlive its run', 'lower maxRunMs')
  }
  atLeast('maxRunMs', 'inFlightWaitMs', ms('inFlightWaitMs'), 'no run lasts longer', 'lower inFlightWaitMs')
  if (ms('clockSkewMs') >= leastRetentionMs) {
    mistakes.push(
      `clockSkewMs: ${ms('clockSkewMs')} is not less than the retention, ${leastRetentionMs}: every operation would have expired`,
    )
  }
  return mistakes
}

function aStore(value: unknown): string | null {
  const store = value as Partial<Store> | null | undefined
  const commands = [store?.begin, store?.renew, store?.complete, store?.release]
  return commands.every((command) => typeof command === 'function')
    ? null
    : "a store, such as new MemoryStore() from 'once-per-key/memory'"
}
