import { optionRules, resolveOptions } from 'once-per-key/core'
import { expect, test } from 'vitest'
import { mistakesOf } from '../support/mistakes-of.js'

interface Sizes {
  readonly size: 'small' | 'large' | undefined
  readonly leastBytes: number
  readonly mostBytes: number
}

const TABLE = {
  size: {
    rule: optionRules.oneOf('small', 'large'),
    preset: (size: unknown) => (size === 'large' ? { mostBytes: 9 } : {}),
  },
  leastBytes: { rule: optionRules.anInteger(0, 9), isRequired: true, findConflicts: findTooFew },
  mostBytes: { rule: optionRules.anInteger(0, 9), default: 5 },
}

function findTooFew({ leastBytes, mostBytes }: Sizes): string[] {
  return leastBytes > mostBytes ? [`leastBytes: ${leastBytes} is more than mostBytes`] : []
}

const resolve = (given: unknown) => resolveOptions<Sizes>('MyStore', given, TABLE)
const mistakes = (given: unknown) => mistakesOf(() => resolve(given))

test('an option that is absent or undefined has its default', () => {
  expect(resolve({ leastBytes: 1 })).toEqual({ leastBytes: 1, mostBytes: 5 })
  expect(resolve({ leastBytes: 1, mostBytes: undefined })).toEqual({ leastBytes: 1, mostBytes: 5 })
})

test('a preset changes the default of another option, and not what was given', () => {
  expect(resolve({ size: 'large', leastBytes: 1 })).toEqual({ size: 'large', leastBytes: 1, mostBytes: 9 })
  expect(resolve({ size: 'large', leastBytes: 1, mostBytes: 2 }).mostBytes).toBe(2)
})

test('conflicts are found against defaults and presets', () => {
  expect(mistakes({ leastBytes: 6 })).toEqual(['leastBytes: 6 is more than mostBytes'])
  expect(mistakes({ leastBytes: 6, size: 'large' })).toEqual([])
})

test('a value that breaks its own rule is reported once', () => {
  expect(mistakes({ leastBytes: 6, mostBytes: -1 })).toEqual(['mostBytes: expected an integer from 0 to 9; seen: -1'])
})

test('a rule may return a line for each wrong part', () => {
  const table = { parts: (value: unknown) => (value as string[]).map((part) => `parts.${part}: unknown`) }
  expect(mistakesOf(() => resolveOptions('MyStore', { parts: ['a', 'b'] }, table))).toEqual([
    'parts.a: unknown',
    'parts.b: unknown',
  ])
  expect(mistakesOf(() => resolveOptions('MyStore', { parts: [] }, table))).toEqual([])
})

test('what is required and absent is a mistake beside unknown names', () => {
  expect(mistakes({ mostByte: 1 })).toEqual([
    'mostByte: did you mean mostBytes?',
    'leastBytes: expected an integer from 0 to 9; seen: undefined',
  ])
})
