import { IdempotencyError, kindOf } from './errors.js'

/** What was expected, or `null` where the value is right. */
export type Rule = (value: unknown) => string | null

/**
 * All that is wrong with what was given: names that no rule knows, and values (defaults in place) that break theirs.
 * Each in a line. An absent value is wrong only where it is required.
 */
export function mistakesIn(
  given: object,
  values: object,
  rules: Readonly<Record<string, Rule>>,
  required: readonly string[] = [],
): string[] {
  const mistakes = Object.keys(given).flatMap((name) => unknownName(name, Object.keys(rules)))
  for (const [name, rule] of Object.entries(rules)) {
    const value = (values as Record<string, unknown>)[name]
    const expected = value === undefined && !required.includes(name) ? null : rule(value)
    if (expected !== null) mistakes.push(`${name}: expected ${expected}; seen: ${shown(value)}`)
  }
  return mistakes
}

/** The given options without those that are `undefined`, which are as good as absent. */
export function presentIn(given: object): Record<string, unknown> {
  return Object.fromEntries(Object.entries(given).filter(([, value]) => value !== undefined))
}

/** @throws IdempotencyError `options_invalid` where the options are no object. */
export function refuseNonObject(of: string, given: unknown): void {
  if (typeof given !== 'object' || given === null)
    throw optionsInvalid(of, [`expected an object; seen: ${kindOf(given)}`])
}

/** @throws IdempotencyError `options_invalid`, which lists every mistake, if there is one. */
export function refuseMistakes(of: string, mistakes: readonly string[]): void {
  if (mistakes.length > 0) throw optionsInvalid(of, mistakes)
}

export function optionsInvalid(of: string, mistakes: readonly string[]): IdempotencyError {
  return new IdempotencyError('options_invalid', `The options of ${of} are not right:${listed(mistakes)}`)
}

/** Each mistake on a line of its own. */
export function listed(mistakes: readonly string[]): string {
  return mistakes.map((mistake) => `\n  - ${mistake}`).join('')
}

// --- rules

export const aFunction: Rule = (value) => (typeof value === 'function' ? null : 'a function')

export const aString: Rule = (value) => (typeof value === 'string' ? null : 'a string')

/** RFC 9110 §5.1, "field-name". */
export const HEADER_NAME = /^[!#$%&'*+.^_`|~0-9A-Za-z-]+$/

export const aHeaderName: Rule = (value) =>
  typeof value === 'string' && HEADER_NAME.test(value) ? null : "a header's name"

export function wholeNumber(least: number, most: number): Rule {
  return (value) =>
    Number.isInteger(value) && (value as number) >= least && (value as number) <= most
      ? null
      : `a whole number from ${least} to ${most}`
}

export function oneOf(...allowed: readonly (string | boolean)[]): Rule {
  const expected = allowed.map((one) => JSON.stringify(one)).join(' or ')
  return (value) => (allowed.includes(value as string | boolean) ? null : expected)
}

function shown(value: unknown): string {
  if (typeof value === 'number' || typeof value === 'boolean') return String(value)
  return typeof value === 'string' ? JSON.stringify(value) : kindOf(value)
}

function unknownName(name: string, known: readonly string[]): string[] {
  if (known.includes(name)) return []
  const nearest = known.reduce((best, each) => (editDistance(name, each) < editDistance(name, best) ? each : best))
  const hint =
    editDistance(name, nearest) <= Math.max(2, name.length / 3) ? `did you mean ${nearest}?` : 'there is no such option'
  return [`${name}: ${hint}`]
}

/** Levenshtein's distance, without regard to case. */
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
