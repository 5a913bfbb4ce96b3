import { checkOptions, kindOf, type OptionRule } from '../../core/index.js'

/** The options with their secrets converted to keys. Messages name the kind of a wrong secret, never its value. */
export function withKeys<Options extends { readonly secrets: readonly unknown[] }>(
  of: string,
  options: Options,
  rules: Readonly<Record<string, OptionRule>>,
  keyOf: (secret: unknown) => Uint8Array | string,
  terms: { readonly isOptional?: boolean; readonly more?: readonly string[] } = {},
): Omit<Options, 'secrets'> & { readonly secrets: readonly Uint8Array[] } {
  const { secrets, ...others } = Object(options) as Options
  const keys = Array.isArray(secrets) ? secrets.map(keyOf) : []
  const more = keys.flatMap((key, index) => (typeof key === 'string' ? [`secrets[${index}]: ${key}`] : []))
  const required = ['header', ...(terms.isOptional ? [] : ['secrets'])]
  const allRules = { ...rules, secrets: someKeys('secret') }
  checkOptions(of, options, { ...others, secrets }, allRules, { required, more: [...more, ...(terms.more ?? [])] })
  return { ...others, secrets: keys as Uint8Array[] }
}

/** An option rule: an array that is not empty, whose values are never shown. */
export function someKeys(what: string): OptionRule {
  return (value) => {
    if (Array.isArray(value) && value.length > 0) return null
    return {
      expected: `an array of at least one ${what}`,
      seen: Array.isArray(value) ? 'an empty array' : kindOf(value),
    }
  }
}
