import { describeKind, IdempotencyError } from './errors.js'

/**
 * Checks a value: returns what was expected, or `null` if it is valid. A rule for a value with parts also says which part is wrong, or
 * returns a line for each part that is.
 */
export type Rule = (value: unknown) => string | Fault | readonly string[] | null

/**
 * What is wrong with a value: what was expected and what was seen. It becomes part of an error's message, so never a
 * secret.
 */
export interface Fault {
  readonly expected: string
  readonly seen: string
}

/** One option in a table of options. */
export interface Option<Value = unknown> {
  readonly rule: Rule
  readonly default?: Value
  readonly isRequired?: boolean
  /** What the option's value changes about the defaults of other options, as a profile does. */
  preset?(value: unknown): object
  /**
   * What other options contradict, one line each. `values` have their defaults; one that breaks its own rule is `undefined`, so
   * that it is reported once.
   */
  findConflicts?(values: never, given: never): readonly string[]
}

/** The options by name. A rule alone stands for an option that may be absent, and that has no default. */
export type OptionTable<Options = Record<string, unknown>> = {
  readonly [Name in keyof Options]-?: Rule | Option<Options[Name]>
}

/**
 * Checks the options of your own store, binding or receiver, with the library's own messages, and returns them with their defaults. `of`
 * names them in the message, for example `MyStore`. An option that is `undefined` counts as absent.
 *
 * @example const { prefix } = resolveOptions<MyOptions>('MyStore', given, { prefix: { rule: optionRules.aString, default: 'payments' } })
 * @throws IdempotencyError `options_invalid`, which lists every mistake, including unknown names.
 */
export function resolveOptions<Options>(of: string, given: unknown, table: OptionTable): Options {
  const mistakes = findMistakes(given, table)
  if (mistakes.length > 0) {
    throw new IdempotencyError('options_invalid', `The options of ${of} are invalid:${toBulletList(mistakes)}`)
  }
  return applyDefaults(given, table)
}

/** All mistakes, one line each: unknown names, values that break their rule, and values that contradict each other. */
export function findMistakes(given: unknown, table: OptionTable): string[] {
  const known = Object.keys(table)
  const ofWhole = findOptionsObjectFault(given, known)
  if (ofWhole !== null) return [ofWhole]
  const mistakes = Object.keys(given as object).flatMap((name) => listUnknownNameMistakes(name, known))
  const entries = listEntries(given, table)
  const values = applyEntryDefaults(entries)
  for (const { name, value, option } of entries) {
    const fault = value === undefined && option.isRequired !== true ? null : option.rule(value)
    const lines = toLines(name, value, fault)
    mistakes.push(...lines)
    if (lines.length > 0) values[name] = undefined
  }
  const conflicts = entries.flatMap(({ option }) => option.findConflicts?.(values as never, given as never) ?? [])
  return [...mistakes, ...conflicts]
}

/** The options of the table as they were given, with their defaults. Nothing is checked. */
export function applyDefaults<Options>(given: unknown, table: OptionTable): Options {
  return applyEntryDefaults(listEntries(given, table)) as Options
}

function applyEntryDefaults(entries: ReturnType<typeof listEntries>): Record<string, unknown> {
  const defaults = Object.fromEntries(entries.map(({ name, option }) => [name, option.default]))
  const presets = entries.map(({ value, option }) => option.preset?.(value))
  const own = Object.fromEntries(entries.map(({ name, value }) => [name, value]))
  return Object.assign(omitUndefined(defaults), ...presets, omitUndefined(own))
}

function toLines(name: string, value: unknown, fault: ReturnType<Rule>): readonly string[] {
  if (fault === null || Array.isArray(fault)) return fault ?? []
  const { expected, seen } =
    typeof fault === 'string' ? { expected: fault, seen: describeValue(value) } : (fault as Fault)
  return [`${name}: expected ${expected}; seen: ${seen}`]
}

function listEntries(given: unknown, table: OptionTable) {
  return Object.entries(table).map(([name, entry]) => {
    const option: Option = typeof entry === 'function' ? { rule: entry } : entry
    return { name, option, value: Object(given)[name] as unknown }
  })
}

/** A store, a pool or a request in place of options is one mistake, not one for each of its fields. */
function findOptionsObjectFault(given: unknown, known: readonly string[]): string | null {
  const mistake = `expected options, such as { ${known[0]}: … }; seen: ${describeKind(given)}${describeObjectWayOut(given, known)}`
  if (!isObject(given)) return mistake
  const prototype: unknown = Object.getPrototypeOf(given)
  if (prototype === null || prototype === Object.prototype) return null
  // An instance with options as its fields, or with handlers as its methods, is taken for them; one that shares a name by chance is not.
  const names = Object.keys(given)
  const ours = names.filter((name) => known.includes(name)).length
  const isOurs = names.length === 0 ? known.some((name) => name in given) : ours * 2 >= names.length
  return isOurs ? null : mistake
}

function describeObjectWayOut(given: unknown, known: readonly string[]): string {
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

export function toBulletList(mistakes: readonly string[]): string {
  return mistakes.map((mistake) => `\n  - ${mistake}`).join('')
}

/** A value for a message; for an object only its kind. */
export function describeValue(value: unknown): string {
  if (typeof value === 'number' || typeof value === 'boolean') return String(value)
  return typeof value === 'string' ? JSON.stringify(value) : describeKind(value)
}

function listUnknownNameMistakes(name: string, known: readonly string[]): string[] {
  if (known.includes(name)) return []
  const meant = findOptionBySynonym(name, known) ?? findNearestName(name, known)
  return [`${name}: ${meant === null ? 'there is no such option' : `did you mean ${meant}?`}`]
}

/** What other libraries call an option, in lower case and without what follows. */
const SYNONYMS: Readonly<Record<string, string>> = {
  retentionMs: 'ttl cachettl keyttl expiry expires expiresin expiresafter expiration lifetime maxage',
  leaseMs: 'lockttl locktimeout lockduration lockexpiry processingtimeout inprogresstimeout',
  header: 'keyheader headername headerkey keyheadername idempotencyheader idempotencykeyheader idempotencykey',
  prefix: 'keyprefix cachekeyprefix cacheprefix storeprefix keynamespace',
  store: 'storage cache adapter storageadapter backend persistence persistencestore redis redisclient',
  scope: 'tenant tenantid account accountid user userid merchantid getscope getuserid',
  required: 'enforce enforceidempotency mandatory require requirekey keyrequired',
  fingerprint: 'payloadhash requesthash hash hashbody getfingerprint',
  onEvent: 'logger onhit onmiss onreplay onerror',
  skip: 'exclude shouldskip skiprequest skipif',
  client: 'redis redisclient connection',
  pool: 'client connection db database pgpool',
  database: 'db client connection',
}

/** The option that is meant by a synonym, in words; `null`: it is none. */
function findOptionBySynonym(name: string, known: readonly string[]): string | null {
  const bare = name.replace(/_/g, '').toLowerCase()
  const unitless = bare.replace(/(?:ms|millis|seconds|secs|sec|minutes|hours)$/, '')
  const isMeant = (option: string) =>
    SYNONYMS[option]?.split(' ').some((synonym) => synonym === bare || synonym === unitless)
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
    const edits = computeEditDistance(name, each)
    if (edits > mostEdits || edits >= fewest) continue
    nearest = each
    fewest = edits
  }
  return nearest
}

/** Levenshtein distance, ignoring case. */
function computeEditDistance(a: string, b: string): number {
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

/** For what is checked elsewhere. */
export const anything: Rule = () => null

export const aFunction: Rule = (value) => (typeof value === 'function' ? null : 'a function')

export const aBoolean: Rule = oneOf(true, false)

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
