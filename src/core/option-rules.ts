import type { LegacyKey } from './legacy-key.js'
import type { IdempotencyOptions, ResolvedOptions } from './options.js'
import { PROBLEM_CODES } from './problem.js'
import type { Store } from './store.js'
import { aFunction, aHeaderName, mistakesIn, oneOf, type Rule, wholeNumber } from './validation.js'

/** All that is wrong with the options of the middleware: each name and value, then the relations between them. */
export function mistakesInOptions<Req>(given: IdempotencyOptions<Req>, options: ResolvedOptions<Req>): string[] {
  return [...mistakesIn(given, options, RULES, REQUIRED), ...brokenRelations(options)]
}

type RuleSet = Readonly<Record<keyof IdempotencyOptions, Rule>>

const REQUIRED = ['store', 'scope']

/** The longest delay that a timer holds: Node fires at once for a longer one. */
const MAX_TIMER_MS = 2 ** 31 - 1

const RULES: RuleSet = {
  store: aStore,
  scope: (value) =>
    typeof value === 'function'
      ? null
      : 'a function of the request that names the merchant account, such as (req) => req.merchantId; ' +
        'an application with a single tenant says `scope: singleTenant`',
  header: aHeaderName,
  required: oneOf(true, false),
  methods: (value) =>
    Array.isArray(value) && value.length > 0 && value.every(isMethod)
      ? null
      : "an array of methods in upper case, such as ['POST']",
  skip: aFunction,
  legacyKey: aLegacyKey,
  fingerprint: aFunction,
  isSuccess: aFunction,
  keepHeader: aFunction,
  leaseMs: wholeNumber(1, MAX_TIMER_MS),
  maxRunMs: wholeNumber(1, MAX_TIMER_MS),
  retentionMs: wholeNumber(1, 2 ** 52),
  inFlightWaitMs: wholeNumber(0, MAX_TIMER_MS),
  retryAfterMs: wholeNumber(0, MAX_TIMER_MS),
  unknownOutcome: oneOf('rerun', 'refuse'),
  storeTimeoutMs: wholeNumber(1, MAX_TIMER_MS),
  storeFailure: oneOf('refuse', 'runUnprotected'),
  maxAnswerBytes: wholeNumber(0, Number.MAX_SAFE_INTEGER),
  renderProblem: aFunction,
  problemStatuses: someProblemStatuses,
  onEvent: aFunction,
}

type Duration = 'leaseMs' | 'storeTimeoutMs' | 'maxRunMs' | 'retentionMs' | 'inFlightWaitMs'

/** A relation is judged only between values that are right by themselves. */
function brokenRelations<Req>(options: ResolvedOptions<Req>): string[] {
  // NaN for the others: it is less than nothing, and nothing is less than it.
  const rightMs = (name: Duration) => (RULES[name](options[name]) === null ? options[name] : Number.NaN)
  const leaseMs = rightMs('leaseMs')
  const storeTimeoutMs = rightMs('storeTimeoutMs')
  const maxRunMs = rightMs('maxRunMs')
  const retentionMs = rightMs('retentionMs')
  const inFlightWaitMs = rightMs('inFlightWaitMs')
  const atLeast = (name: Duration, valueMs: number, bound: string, boundMs: number, why: string) =>
    valueMs < boundMs ? [`${name}: ${valueMs} is less than ${bound} = ${boundMs}: ${why}`] : []
  return [
    ...atLeast('leaseMs', leaseMs, '4 × storeTimeoutMs', 4 * storeTimeoutMs, 'a renewal could not be repeated in time'),
    ...atLeast('maxRunMs', maxRunMs, 'leaseMs', leaseMs, 'a run lasts at least one lease'),
    ...atLeast('retentionMs', retentionMs, 'maxRunMs + leaseMs', maxRunMs + leaseMs, 'a record must outlive its run'),
    ...atLeast('maxRunMs', maxRunMs, 'inFlightWaitMs', inFlightWaitMs, 'there is nothing to wait for after it'),
  ]
}

function aStore(value: unknown): string | null {
  const store = value as Partial<Store> | null | undefined
  const commands = [store?.begin, store?.renew, store?.complete, store?.release]
  const right =
    commands.every((command) => typeof command === 'function') &&
    (store?.effects === 'outside' || store?.effects === 'inside')
  return right ? null : "a store, such as new MemoryStore() from 'once-per-key/memory'"
}

function isMethod(value: unknown): boolean {
  return typeof value === 'string' && /^[A-Z]+(?:-[A-Z]+)*$/.test(value)
}

function aLegacyKey(value: unknown): string | null {
  const legacy = (value ?? {}) as Partial<LegacyKey>
  const right =
    typeof legacy.field === 'string' &&
    legacy.field !== '' &&
    isDate(legacy.deprecatedSince) &&
    (legacy.sunset === undefined || isDate(legacy.sunset)) &&
    (legacy.link === undefined ||
      (typeof legacy.link === 'string' && /^[\x21-\x3b\x3d\x3f-\x7e]+$/.test(legacy.link))) &&
    (legacy.whenBoth === undefined || legacy.whenBoth === 'header' || legacy.whenBoth === 'reject')
  return right
    ? null
    : "bodyField('name', { deprecatedSince: Date, sunset?: Date, link?: a URL, whenBoth?: 'header' | 'reject' })"
}

function isDate(value: unknown): boolean {
  return value instanceof Date && !Number.isNaN(value.getTime())
}

function someProblemStatuses(value: unknown): string | null {
  const right =
    typeof value === 'object' &&
    value !== null &&
    Object.entries(value).every(
      ([code, status]) =>
        (PROBLEM_CODES as readonly string[]).includes(code) &&
        Number.isInteger(status) &&
        status >= 400 &&
        status <= 599,
    )
  return right ? null : `statuses from 400 to 599 by code (${PROBLEM_CODES.join(', ')})`
}
