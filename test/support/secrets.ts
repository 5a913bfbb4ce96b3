import { inspect } from 'node:util'
import { expect } from 'vitest'

/** A word that stands nowhere but in the values of a statement. */
export interface Secret {
  readonly words: string
  /** How a client, a server or a tool may write it. */
  readonly forms: readonly string[]
}

export function secretOf(words: string): Secret {
  const bytes = Buffer.from(words)
  const hex = bytes.toString('hex')
  const escaped = JSON.stringify(words).slice(1, -1)
  const apart = hex.replace(/(..)(?!$)/g, '$1 ')
  return {
    words,
    forms: [words, hex, apart, bytes.toString('base64').slice(0, -4), escaped].map((form) => form.toLowerCase()),
  }
}

/** Whatever of an error can be printed, whoever prints it. */
export function printed(error: unknown): string {
  const whole = { depth: 20, maxArrayLength: null, maxStringLength: null } as const
  const seen = new Set<unknown>()
  const visit = (value: unknown): unknown => {
    if (typeof value !== 'object' || value === null) return typeof value === 'bigint' ? `${value}` : value
    if (seen.has(value)) return null
    seen.add(value)
    const names = Reflect.ownKeys(value).map((name) => [String(name), visit(Reflect.get(value, name))] as const)
    return Object.fromEntries(names)
  }
  const shown = [inspect(error, whole), inspect(error, { ...whole, showHidden: true }), String(error), visit(error)]
  return JSON.stringify(shown).toLowerCase()
}

export function expectNothingOf(error: unknown, secrets: readonly Secret[]): void {
  const shown = printed(error)
  for (const { words, forms } of secrets) {
    for (const form of forms) expect(shown.includes(form), `${words} is shown as ${form}`).toBe(false)
  }
}
