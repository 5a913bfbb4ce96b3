import type { Rule } from './validation.js'

/** A function. */
export const aFunction: Rule = (value) => (typeof value === 'function' ? null : 'a function')

/** A string, which may be empty. */
export const aString: Rule = (value) => (typeof value === 'string' ? null : 'a string')

/** An integer between both bounds, inclusive. */
export function anInteger(least: number, most: number): Rule {
  return (value) =>
    Number.isInteger(value) && (value as number) >= least && (value as number) <= most
      ? null
      : `an integer from ${least} to ${most}`
}

/** One of a few strings or booleans. */
export function oneOf(...allowed: readonly (string | boolean)[]): Rule {
  const expected = allowed.map((one) => JSON.stringify(one)).join(' or ')
  return (value) => (allowed.includes(value as string | boolean) ? null : expected)
}
