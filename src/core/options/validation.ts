import { describeKind, IdempotencyError } from '../errors.js'

/**
 * Checks a value: returns what was expected, or `null` if it is valid. A rule for a value with parts also says which
 * part is wrong.
 */
export type Rule = (value: unknown) => string | Fault | null

/**
 * What is wrong with a value: what was expected and what was seen. It becomes part of an error's message, so never a
 * secret.
 */
export interface Fault {
  readonly expected: string
  readonly seen: string
}

/**
 * All mistakes, one line each: unknown names, and values (with defaults) that break their rule. An absent value is
 * wrong only if it is required. For options inside options; use `checkOptions` otherwise.
 */
export function findMistakes(
  given: unknown,
  values: object,
  rules: Readonly<Record<string, Rule>>,
  required: readonly string[] = [],
): string[] {
  const ofWhole = faultOfWhole(given, rules)
  if (ofWhole !== null) return [ofWhole]
  const known = Object.keys(rules)
  const mistakes = Object.keys(given as object).flatMap((name) => unknownName(name, known))
  for (const [name, rule] of Object.entries(rules)) {
    const value = (values as Record<string, unknown>)[name]
    const fault = value === undefined && !required.includes(name) ? null : rule(value)
    if (fault === null) continue
    const { expected, seen } = typeof fault === 'string' ? { expected: fault, seen: describeValue(value) } : fault
    mistakes.push(`${name}: expected ${expected}; seen: ${seen}`)
  }
  return mistakes
}

/** A store, a pool or a request in place of options is one mistake, not one for each of its fields. */
function faultOfWhole(given: unknown, rules: Readonly<Record<string, Rule>>): string | null {
  const known = Object.keys(rules)
  const mistake = `expected options, such as { ${known[0]}: … }; seen: ${describeKind(given)}${wayOutOfWhole(given, known)}`
  if (!isObject(given)) return mistake
  const prototype: unknown = Object.getPrototypeOf(given)
  if (prototype === null || prototype === Object.prototype) return null
  // An instance with options as its fields, or with handlers as its methods, is taken for them; one that shares a name by chance is not.
  const names = Object.keys(given)
  const ours = names.filter((name) => known.includes(name)).length
  const isOurs = names.length === 0 ? known.some((name) => name in given) : ours * 2 >= names.length
  return isOurs ? null : mistake
}

function wayOutOfWhole(given: unknown, known: readonly string[]): string {
  const { begin, renew, method, headers, req } = Object(given)
  if (typeof begin === 'function' && typeof renew === 'function' && known.includes('store')) {
    return '. Give the store as an option: { store, … }'
  }
  const isOfRequest = (typeof method === 'string' && isObject(headers)) || isObject(req)
  return isOfRequest
    ? `. It was mounted without having been called: mount what it returns for its options, { ${known[0]}: …, … }`
    : ''
}

function isObject(given: unknown): given is object {
  return typeof given === 'object' && given !== null
}

/** The given options without those that are `undefined`, which count as absent. */
export function omitUndefined(given: unknown): Record<string, unknown> {
  if (!isObject(given)) return {}
  return Object.fromEntries(Object.entries(given).filter(([, value]) => value !== undefined))
}

/**
 * Checks the options of your own store, binding or receiver, with the library's own messages. `of` names them in the
 * message, for example `MyStore`. `values` has the defaults applied; `more` are mistakes that no rule of a single
 * option finds, one line each.
 *
 * @example checkOptions('MyStore', given, { prefix }, { prefix: optionRules.aString })
 * @throws IdempotencyError `options_invalid`, which lists every mistake, including unknown names.
 */
export function checkOptions(
  of: string,
  given: unknown,
  values: object,
  rules: Readonly<Record<string, Rule>>,
  { required = [], more = [] }: { readonly required?: readonly string[]; readonly more?: readonly string[] } = {},
): void {
  checkAreOptions(of, given, rules)
  refuseMistakes(of, [...findMistakes(given, values, rules, required), ...more])
}

/**
 * Refuses what is no options at all, before somebody takes some of them out.
 *
 * @throws IdempotencyError `options_invalid`
 */
export function checkAreOptions(of: string, given: unknown, rules: Readonly<Record<string, Rule>>): void {
  const ofWhole = faultOfWhole(given, rules)
  if (ofWhole !== null) refuseMistakes(of, [ofWhole])
}

/** @throws IdempotencyError `options_invalid`, which lists every mistake, if there is one. */
function refuseMistakes(of: string, mistakes: readonly string[]): void {
  if (mistakes.length === 0) return
  throw new IdempotencyError('options_invalid', `The options of ${of} are invalid:${toBulletList(mistakes)}`)
}

export function toBulletList(mistakes: readonly string[]): string {
  return mistakes.map((mistake) => `\n  - ${mistake}`).join('')
}

/** A value for a message; for an object only its kind. */
export function describeValue(value: unknown): string {
  if (typeof value === 'number' || typeof value === 'boolean') return String(value)
  return typeof value === 'string' ? JSON.stringify(value) : describeKind(value)
}

function unknownName(name: string, known: readonly string[]): string[] {
  if (known.includes(name)) return []
  const meant = meantBy(name, known) ?? findNearestName(name, known)
  return [`${name}: ${meant === null ? 'there is no such option' : `did you mean ${meant}?`}`]
}

/** What other libraries call an option, in lower case and without what follows. */
const SYNONYMS: Readonly<Record<string, readonly string[]>> = {
  retentionMs: [
    'ttl',
    'cachettl',
    'keyttl',
    'expiry',
    'expires',
    'expiresin',
    'expiresafter',
    'expiration',
    'lifetime',
    'maxage',
  ],
  leaseMs: ['lockttl', 'locktimeout', 'lockduration', 'lockexpiry', 'processingtimeout', 'inprogresstimeout'],
  header: [
    'keyheader',
    'headername',
    'headerkey',
    'keyheadername',
    'idempotencyheader',
    'idempotencykeyheader',
    'idempotencykey',
  ],
  prefix: ['keyprefix', 'cachekeyprefix', 'cacheprefix', 'storeprefix', 'keynamespace'],
  store: [
    'storage',
    'cache',
    'adapter',
    'storageadapter',
    'backend',
    'persistence',
    'persistencestore',
    'redis',
    'redisclient',
  ],
  scope: ['tenant', 'tenantid', 'account', 'accountid', 'user', 'userid', 'merchantid', 'getscope', 'getuserid'],
  required: ['enforce', 'enforceidempotency', 'mandatory', 'require', 'requirekey', 'keyrequired'],
  fingerprint: ['payloadhash', 'requesthash', 'hash', 'hashbody', 'getfingerprint'],
  onEvent: ['logger', 'onhit', 'onmiss', 'onreplay', 'onerror'],
  skip: ['exclude', 'shouldskip', 'skiprequest', 'skipif'],
  client: ['redis', 'redisclient', 'connection'],
  pool: ['client', 'connection', 'db', 'database', 'pgpool'],
  database: ['db', 'client', 'connection'],
}

/** The option that is meant by a synonym, in words; `null`: it is none. */
function meantBy(name: string, known: readonly string[]): string | null {
  const bare = name.replace(/_/g, '').toLowerCase()
  const unitless = bare.replace(/(?:ms|millis|seconds|secs|sec|minutes|hours)$/, '')
  const isMeant = (option: string) => SYNONYMS[option]?.some((synonym) => synonym === bare || synonym === unitless)
  const option = known.find(isMeant)
  if (option !== undefined) return option.endsWith('Ms') ? `${option}, in milliseconds` : option
  return isMeant('prefix') && known.includes('store') ? 'prefix, an option of the store' : null
}

/** The known name that was probably meant; `null` if none is similar. */
export function findNearestName(name: string, known: readonly string[]): string | null {
  const mostEdits = Math.max(2, name.length / 3)
  let nearest: string | null = null
  let fewest = Number.POSITIVE_INFINITY
  for (const each of known) {
    const edits = editDistance(name, each)
    if (edits > mostEdits || edits >= fewest) continue
    nearest = each
    fewest = edits
  }
  return nearest
}

/** Levenshtein distance, ignoring case. */
function editDistance(a: string, b: string): number {
  let previous = Array.from({ length: b.length + 1 }, (_, i) => i)
  for (let i = 1; i <= a.length; i++) {
    const current = [i]
    for (let j = 1; j <= b.length; j++) {
      const same = a[i - 1]?.toLowerCase() === b[j - 1]?.toLowerCase()
      const replaced = (previous[j - 1] as number) + (same ? 0 : 1)
      current.push(Math.min(replaced, (previous[j] as number) + 1, (current[j - 1] as number) + 1))
    }
    previous = current
  }
  return previous[b.length] as number
}

export const aFunction: Rule = (value) => (typeof value === 'function' ? null : 'a function')

export const aString: Rule = (value) => (typeof value === 'string' ? null : 'a string')

/** An integer between both bounds, inclusive. */
export function anInteger(least: number, most: number): Rule {
  return (value) =>
    Number.isInteger(value) && (value as number) >= least && (value as number) <= most
      ? null
      : `an integer from ${least} to ${most}`
}

export function oneOf(...allowed: readonly (string | boolean)[]): Rule {
  const expected = allowed.map((one) => JSON.stringify(one)).join(' or ')
  return (value) => (allowed.includes(value as string | boolean) ? null : expected)
}
