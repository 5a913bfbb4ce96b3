import {
  ENGINE_RULES as ALL_ENGINE_RULES,
  type EngineOptions,
  findRelationMistakes,
} from '../../core/options/engine-options.js'
import {
  aFunction,
  anInteger,
  checkAreOptions as checkAre,
  checkOptions,
  describeValue,
  type Fault,
  findMistakes,
  findNearestName,
  omitUndefined,
  oneOf,
  type Rule,
} from '../../core/options/validation.js'
import type { Store } from '../../core/store.js'
import { DEFAULTS, type IdempotencyOptions, type LegacyKey, type ResolvedOptions } from './options.js'
import { PROBLEM_CODES } from './problem.js'
import { aProfile, applyProfile, findContradictions } from './profiles.js'

/**
 * Reads the options once, at construction.
 *
 * @throws IdempotencyError `options_invalid`, which lists every mistake; nothing was built.
 */
export function resolveOptions<Req>(given: IdempotencyOptions<Req>): ResolvedOptions<Req> {
  const options = withDefaults(given)
  const values = judgedIn(given, options)
  const more = [...mistakesInAll(values), ...findContradictions(given)]
  checkOptions('idempotency()', given, values, RULES, { required: REQUIRED, more })
  return Object.freeze({ ...options, methods: [...options.methods] })
}

export function pickEngineOptions(options: ResolvedOptions<never>): Omit<EngineOptions, 'onEvent'> {
  const own = Object.keys(ALL_ENGINE_RULES).map((name) => [name, options[name as keyof typeof options]])
  return omitUndefined(Object.fromEntries(own)) as unknown as EngineOptions
}

function withDefaults<Req>(given: IdempotencyOptions<Req>): ResolvedOptions<Req> {
  const options = {
    ...DEFAULTS,
    ...(applyProfile(omitUndefined(given)) as Pick<IdempotencyOptions<Req>, 'store' | 'scope'>),
  }
  return { unknownRetentionMs: options.retentionMs, ...options }
}

/**
 * All mistakes in a request engine's options, one line each: for your own binding or receiver, whose options include
 * them, and which reports all mistakes in one error (`more` of `checkOptions`).
 */
export function findOptionMistakes<Req>(given: IdempotencyOptions<Req>): string[] {
  const values = judgedIn(given, withDefaults(given))
  return [...findMistakes(given, values, RULES, REQUIRED), ...mistakesInAll(values), ...findContradictions(given)]
}

/**
 * Refuses what is no options at all, such as a store in their place: for a binding that takes options of its own out of them first.
 *
 * @throws IdempotencyError `options_invalid`
 */
export function checkAreOptions(given: unknown): void {
  checkAre('idempotency()', given, RULES)
}

/** The methods that options cover: with the default, and those of a profile. For a binding that knows the methods of its routes. */
export function listCoveredMethods<Req>(given: IdempotencyOptions<Req>): readonly string[] {
  return withDefaults(given).methods
}

/**
 * A missing `unknownRetentionMs` is `retentionMs`, whose mistakes are reported only once. A missing `clockSkewMs` must only fit
 * where it is used.
 */
function judgedIn<Req>(given: IdempotencyOptions<Req>, options: ResolvedOptions<Req>) {
  const { unknownRetentionMs } = given ?? {}
  return { ...options, unknownRetentionMs, ...(options.firstSent === undefined && { clockSkewMs: given?.clockSkewMs }) }
}

type Judged = Parameters<typeof findRelationMistakes>[0] & { readonly firstSent?: unknown; readonly store: Store }

function mistakesInAll(values: Judged): string[] {
  return [...findRelationMistakes(values), ...mistakesInFirstSent(values)]
}

/** That the store has its four commands is checked elsewhere. */
function mistakesInFirstSent({ firstSent, store }: Judged): string[] {
  if (firstSent === undefined || typeof store?.begin !== 'function' || typeof store.inspect === 'function') return []
  return ['firstSent: it needs a store with `inspect`, which shows whether the record of a late retry is still there']
}

const { answerFault: _, store, ...ENGINE_RULES } = ALL_ENGINE_RULES

type RuleSet = Readonly<Record<keyof IdempotencyOptions, Rule>>

const REQUIRED = ['store', 'scope']

const RULES: RuleSet = {
  store,
  scope: (value) =>
    typeof value === 'function'
      ? null
      : 'a function of the request that names the merchant account, such as (req) => req.merchantId; ' +
        'an application with a single tenant uses `scope: singleTenant`',
  profile: aProfile,
  documentation: aPage,
  header: aHeaderName,
  required: oneOf(true, false),
  methods: someMethods,
  skip: aFunction,
  legacyKey: aLegacyKey,
  fingerprint: aFunction,
  firstSent: aFunction,
  isSuccess: aFunction,
  isCertainFailure: aFunction,
  keepFailure: aFunction,
  keepHeader: aFunction,
  ...ENGINE_RULES,
  maxAnswerBytes: anInteger(0, Number.MAX_SAFE_INTEGER),
  streams: aFunction,
  renderProblem: aFunction,
  problemStatuses: someProblemStatuses,
}

/** RFC 9110 §5.1, "field-name". */
const HEADER_NAME = /^[!#$%&'*+.^_`|~0-9A-Za-z-]+$/

export function isHeaderName(name: string): boolean {
  return HEADER_NAME.test(name)
}

export function aHeaderName(value: unknown): string | null {
  return typeof value === 'string' && isHeaderName(value) ? null : "a header's name"
}

function someMethods(value: unknown): string | Fault | null {
  const expected = "an array of methods in upper case, such as ['POST']"
  if (!Array.isArray(value)) return expected
  if (value.length === 0) return { expected, seen: 'an empty array' }
  const wrong = value.findIndex((method) => !isMethod(method))
  if (wrong === -1) return null
  const seen: unknown = value[wrong]
  const meant = typeof seen === 'string' ? seen.trim().toUpperCase() : ''
  return { expected, seen: describeValue(seen) + (isMethod(meant) ? ` (did you mean '${meant}'?)` : '') }
}

function isMethod(value: unknown): boolean {
  return typeof value === 'string' && /^[A-Z]+(?:-[A-Z]+)*$/.test(value)
}

function aLegacyKey(value: unknown): string | Fault | null {
  const legacy = (value ?? {}) as Partial<LegacyKey>
  const expected =
    "bodyField('name', { deprecatedSince: Date, sunset?: Date, link?: a URL, whenBoth?: 'reject' | 'field' | 'header' })"
  const right =
    typeof legacy.field === 'string' &&
    legacy.field !== '' &&
    isDate(legacy.deprecatedSince) &&
    (legacy.sunset === undefined || isDate(legacy.sunset)) &&
    (legacy.link === undefined ||
      (typeof legacy.link === 'string' && /^[\x21-\x3b\x3d\x3f-\x7e]+$/.test(legacy.link))) &&
    (legacy.whenBoth === undefined || ['reject', 'field', 'header'].includes(legacy.whenBoth))
  if (!right) return expected
  const unknown = Object.keys(legacy).find((name) => !LEGACY_KEY_NAMES.includes(name))
  return unknown === undefined ? null : { expected, seen: `the option ${withNearest(unknown, LEGACY_KEY_NAMES)}` }
}

const LEGACY_KEY_NAMES: readonly string[] = ['field', 'deprecatedSince', 'sunset', 'link', 'whenBoth']

/** A name that is not known, with the one that was probably meant. */
function withNearest(name: string, known: readonly string[]): string {
  const nearest = findNearestName(name, known)
  return nearest === null ? name : `${name} (did you mean ${nearest}?)`
}

/** In a header it stands between angle brackets. */
function aPage(value: unknown): string | null {
  const isPage =
    typeof value === 'string' && /^https?:\/\/[\x21-\x3b\x3d\x3f-\x7e]+$/.test(value) && URL.canParse(value)
  return isPage ? null : 'an absolute URL of a page, with http or https'
}

function isDate(value: unknown): boolean {
  return value instanceof Date && !Number.isNaN(value.getTime())
}

function someProblemStatuses(value: unknown): string | Fault | null {
  const expected = `statuses from 400 to 599 by code (${PROBLEM_CODES.join(', ')})`
  if (typeof value !== 'object' || value === null) return expected
  for (const [code, status] of Object.entries(value)) {
    if (!(PROBLEM_CODES as readonly string[]).includes(code)) {
      return { expected, seen: `the code ${withNearest(code, PROBLEM_CODES)}` }
    }
    const isRight = Number.isInteger(status) && status >= 400 && status <= 599
    if (!isRight) return { expected, seen: `${code}: ${describeValue(status)}` }
  }
  return null
}
