import { nearestOf } from './did-you-mean.js'
import { IdempotencyError, kindOf } from './errors.js'

/** Judges a value: what was expected, or `null` where it is right. A rule for a value with parts also says which part it saw. */
export type Rule = (value: unknown) => string | Fault | null

/** What is wrong with a value: what was expected, and what was seen, in words. No secret: it stands in an error's message. */
export interface Fault {
  readonly expected: string
  readonly seen: string
}

/**
 * All that is wrong with what was given, a line each: names that no rule knows, and values (defaults in place) that break their
 * rule. An absent value is wrong only where it is required. For options inside of options; the others are for `checkOptions`.
 */
export function mistakesIn(
  given: unknown,
  values: object,
  rules: Readonly<Record<string, Rule>>,
  required: readonly string[] = [],
): string[] {
  if (typeof given !== 'object' || given === null) return [`expected an object; seen: ${kindOf(given)}`]
  const mistakes = Object.keys(given).flatMap((name) => unknownName(name, Object.keys(rules)))
  for (const [name, rule] of Object.entries(rules)) {
    const value = (values as Record<string, unknown>)[name]
    const fault = value === undefined && !required.includes(name) ? null : rule(value)
    if (fault === null) continue
    const { expected, seen } = typeof fault === 'string' ? { expected: fault, seen: shown(value) } : fault
    mistakes.push(`${name}: expected ${expected}; seen: ${seen}`)
  }
  return mistakes
}

/** The given options without those that are `undefined`, which are as good as absent. */
export function presentIn(given: unknown): Record<string, unknown> {
  if (typeof given !== 'object' || given === null) return {}
  return Object.fromEntries(Object.entries(given).filter(([, value]) => value !== undefined))
}

/**
 * Holds options to rules, for a store, a binding or a receiver of one's own: they are refused as the library's own are. `of`
 * names them in the message, such as `MyStore`. `values` has the defaults in place; `more` are mistakes that no rule of a single
 * option finds, a line each.
 *
 * @example checkOptions('MyStore', given, { prefix }, { prefix: optionRules.aString })
 * @throws IdempotencyError `options_invalid`, which lists every mistake, names that no rule knows included.
 */
export function checkOptions(
  of: string,
  given: unknown,
  values: object,
  rules: Readonly<Record<string, Rule>>,
  { required = [], more = [] }: { readonly required?: readonly string[]; readonly more?: readonly string[] } = {},
): void {
  const isObject = typeof given === 'object' && given !== null
  const mistakes = mistakesIn(given, values, rules, required)
  refuseMistakes(of, isObject ? [...mistakes, ...more] : mistakes)
}

/** @throws IdempotencyError `options_invalid`, which lists every mistake, if there is one. */
function refuseMistakes(of: string, mistakes: readonly string[]): void {
  if (mistakes.length === 0) return
  throw new IdempotencyError('options_invalid', `The options of ${of} are not right:${listed(mistakes)}`)
}

/** Each mistake on a line of its own. */
export function listed(mistakes: readonly string[]): string {
  return mistakes.map((mistake) => `\n  - ${mistake}`).join('')
}

/** A value as it may stand in a message: of an object its kind alone. */
export function shown(value: unknown): string {
  if (typeof value === 'number' || typeof value === 'boolean') return String(value)
  return typeof value === 'string' ? JSON.stringify(value) : kindOf(value)
}

function unknownName(name: string, known: readonly string[]): string[] {
  if (known.includes(name)) return []
  const nearest = nearestOf(name, known)
  return [`${name}: ${nearest === null ? 'there is no such option' : `did you mean ${nearest}?`}`]
}
