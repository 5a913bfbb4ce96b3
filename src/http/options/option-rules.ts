import { engineOptions as allEngineOptions, type EngineOptions } from '../../core/options/engine-options.js'
import {
  aBoolean,
  aFunction,
  anInteger,
  applyDefaults,
  describeValue,
  type Fault,
  findNearestName,
  type OptionTable,
  resolveOptions,
} from '../../core/validation.js'
import { type IdempotencyOptions, type LegacyKey, NO_TRAITS, type ResolvedOptions } from './options.js'
import { PROBLEM_CODES } from './problem.js'
import { findContradictions, findProfileMistake, toProfileDefaults } from './profiles.js'

/**
 * Reads the options once, at construction.
 *
 * @throws IdempotencyError `options_invalid`, which lists every mistake; nothing was built.
 */
export function resolveRequestOptions<Req>(given: IdempotencyOptions<Req>): ResolvedOptions<Req> {
  const options = resolveOptions<ResolvedOptions<Req>>('idempotency()', given, requestOptions)
  return Object.freeze({
    ...NO_TRAITS,
    ...options,
    unknownRetentionMs: options.unknownRetentionMs ?? options.retentionMs,
    methods: [...options.methods],
    problemStatuses: { ...toProfileDefaults(options.profile).problemStatuses, ...options.problemStatuses },
  })
}

export function pickEngineOptions(options: ResolvedOptions<never>): Omit<EngineOptions, 'onEvent'> {
  const own = Object.keys(allEngineOptions).map((name) => [name, options[name as keyof typeof options]])
  return Object.fromEntries(own)
}

/** The methods that options cover: with the default, and those of a profile. For a binding that knows the methods of its routes. */
export function listCoveredMethods<Req>(given: IdempotencyOptions<Req>): readonly string[] {
  return applyDefaults<ResolvedOptions<never>>(given, requestOptions).methods
}

const { answerFault: _, store, ...engineOptions } = allEngineOptions

/** The options of a request engine, for the table of your own binding or receiver. */
export const requestOptions = {
  store,
  scope: {
    rule: (value: unknown) =>
      typeof value === 'function'
        ? null
        : 'a function of the request that names the merchant account, such as (req) => req.merchantId; ' +
          'an application with a single tenant uses `scope: singleTenant`',
    isRequired: true,
  },
  documentation: findPageUrlMistake,
  header: { rule: aHeaderName, default: 'Idempotency-Key' },
  required: { rule: aBoolean, default: false },
  methods: { rule: findMethodsMistake, default: ['POST', 'PUT', 'PATCH', 'DELETE'] },
  skip: aFunction,
  legacyKey: findLegacyKeyMistake,
  fingerprint: aFunction,
  firstSent: { rule: aFunction, findConflicts: findInspectMissing },
  isSuccess: aFunction,
  isCertainFailure: aFunction,
  keepFailure: aFunction,
  keepHeader: aFunction,
  ...engineOptions,
  maxAnswerBytes: { rule: anInteger(0, Number.MAX_SAFE_INTEGER), default: 1_048_576 },
  streams: aFunction,
  renderProblem: aFunction,
  problemStatuses: { rule: findStatusesMistake, default: {} },
  profile: { rule: findProfileMistake, preset: toProfileDefaults, findConflicts: findContradictions },
} as const satisfies OptionTable<IdempotencyOptions<never>>

/** As it is exported: without the types of its rules, which are no types of the package. */
export const requestOptionTable: OptionTable<IdempotencyOptions<never>> = requestOptions

function findInspectMissing({ firstSent, store }: IdempotencyOptions<never>): string[] {
  if (firstSent === undefined || store === undefined || typeof store.inspect === 'function') return []
  return ['firstSent: it needs a store with `inspect`, which shows whether the record of a late retry is still there']
}

/** RFC 9110 §5.1, "field-name". */
const HEADER_NAME = /^[!#$%&'*+.^_`|~0-9A-Za-z-]+$/

export function isHeaderName(name: string): boolean {
  return HEADER_NAME.test(name)
}

export function aHeaderName(value: unknown): string | null {
  return typeof value === 'string' && isHeaderName(value) ? null : "a header's name"
}

function findMethodsMistake(value: unknown): string | Fault | null {
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

function findLegacyKeyMistake(value: unknown): string | Fault | null {
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
  return unknown === undefined
    ? null
    : { expected, seen: `the option ${suggestNearestName(unknown, LEGACY_KEY_NAMES)}` }
}

const LEGACY_KEY_NAMES: readonly string[] = ['field', 'deprecatedSince', 'sunset', 'link', 'whenBoth']

/** A name that is not known, with the one that was probably meant. */
function suggestNearestName(name: string, known: readonly string[]): string {
  const nearest = findNearestName(name, known)
  return nearest === null ? name : `${name} (did you mean ${nearest}?)`
}

/** In a header it stands between angle brackets. */
function findPageUrlMistake(value: unknown): string | null {
  const isPage =
    typeof value === 'string' && /^https?:\/\/[\x21-\x3b\x3d\x3f-\x7e]+$/.test(value) && URL.canParse(value)
  return isPage ? null : 'an absolute URL of a page, with http or https'
}

function isDate(value: unknown): boolean {
  return value instanceof Date && !Number.isNaN(value.getTime())
}

function findStatusesMistake(value: unknown): string | Fault | null {
  const expected = `statuses from 400 to 599 by code (${PROBLEM_CODES.join(', ')})`
  if (typeof value !== 'object' || value === null) return expected
  for (const [code, status] of Object.entries(value)) {
    if (!(PROBLEM_CODES as readonly string[]).includes(code)) {
      return { expected, seen: `the code ${suggestNearestName(code, PROBLEM_CODES)}` }
    }
    const isRight = Number.isInteger(status) && status >= 400 && status <= 599
    if (!isRight) return { expected, seen: `${code}: ${describeValue(status)}` }
  }
  return null
}
