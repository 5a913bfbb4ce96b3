import { createHash } from 'node:crypto'
import { readFileSync } from 'node:fs'
import { createOperationEngine, fingerprintOf } from 'once-per-key/core'
import { MemoryStore } from 'once-per-key/memory'
import { describe, expect, test } from 'vitest'

interface Golden {
  readonly name: string
  readonly json?: string
  readonly hex?: string
  readonly fingerprint: string
}

const GOLDEN: Golden[] = JSON.parse(readFileSync(new URL('./golden/fingerprints-v1.json', import.meta.url), 'utf8'))

test.each(GOLDEN)('the fingerprint of $name is frozen', ({ json, hex, fingerprint }) => {
  expect(fingerprintOf(json === undefined ? Buffer.from(hex ?? '', 'hex') : JSON.parse(json))).toBe(fingerprint)
})

test('JSON counts by value, with members in any order; array order counts', () => {
  expect(fingerprintOf({ a: 1, b: { c: [1, 2] } })).toBe(fingerprintOf({ b: { c: [1, 2] }, a: 1 }))
  expect(fingerprintOf({ a: [1, 2] })).not.toBe(fingerprintOf({ a: [2, 1] }))
})

test('a value that is small is hashed as its canonical text', () => {
  const text = 'json\n{"amount":100,"to":"acme"}'
  expect(fingerprintOf({ to: 'acme', amount: 100 })).toBe(`v1.${createHash('sha256').update(text).digest('base64url')}`)
})

const TOKENS = [
  'short',
  'a "quoted" one',
  'ü',
  '\ud800',
  'p'.repeat(40),
  'é'.repeat(40),
  1e15,
  1.5e-7,
  true,
  null,
  [],
  {},
]

test.each(['x', 'ü', '€', '😀', '"'])('a value that is hashed in parts is hashed as its canonical text: %s', (unit) => {
  const piece = unit.repeat(20)
  const pieces = Array(Math.floor(16_100 / Buffer.byteLength(`,${JSON.stringify(piece)}`))).fill(piece)
  // Each token begins at each place around the end of a part, which is 16 KiB.
  for (let units = 220; units <= 320; units++) {
    const before = [...pieces, 'y'.repeat(units % 20), ...Array(Math.floor(units / 20)).fill('y'.repeat(20))]
    for (const token of TOKENS) {
      const given = [...before, token, { token }]
      const text = `json\n${JSON.stringify(given)}`
      expect(fingerprintOf(given)).toBe(`v1.${createHash('sha256').update(text).digest('base64url')}`)
    }
  }
})

test('a `toJSON` may make the fingerprint of another value', () => {
  const other = new (class {
    toJSON = () => fingerprintOf({ inner: [1, 2, 3] })
  })()
  expect(fingerprintOf({ a: 1, b: other, c: 2 })).toBe(fingerprintOf({ a: 1, b: other.toJSON(), c: 2 }))
})

test('bytes and strings count by their bytes, and are no JSON', () => {
  expect(fingerprintOf('päyload')).toBe(fingerprintOf(Buffer.from('päyload')))
  expect(fingerprintOf('{}')).not.toBe(fingerprintOf({}))
})

describe('what has no fingerprint is misuse', () => {
  const nested = (levels: number): unknown => (levels === 0 ? 1 : [nested(levels - 1)])

  test.each([
    { name: 'undefined', value: undefined, seen: 'undefined' },
    { name: 'a Map', value: new Map(), seen: 'an object (Map)' },
    { name: 'a function in an object', value: { pay: () => 1 }, seen: 'a function' },
    { name: 'a symbol in an array', value: [Symbol('a')], seen: 'a symbol' },
  ])('value_not_comparable: $name', ({ value, seen }) => {
    const message = expect.stringContaining(`contains, ${seen}, which has no JSON form`)
    expect(() => fingerprintOf(value)).toThrow(expect.objectContaining({ code: 'value_not_comparable', message }))
  })

  test('value_too_deep: more than 1,000 levels, and a value that holds itself', () => {
    expect(fingerprintOf(nested(1_000))).toMatch(/^v1\./)
    const own: unknown[] = []
    own.push(own)
    for (const value of [nested(1_001), own]) {
      expect(() => fingerprintOf(value)).toThrow(expect.objectContaining({ code: 'value_too_deep' }))
    }
  })
})

test('an operation with the same key and another fingerprint is refused as mismatched', async () => {
  const engine = createOperationEngine({ store: new MemoryStore() })
  const claim = (job: unknown) =>
    engine.claim({ namespace: 'invoices', scope: 'acme', key: 'in_7', fingerprint: fingerprintOf(job) })
  expect(await claim({ amount: 100 })).toMatchObject({ action: 'execute' })
  expect(await claim({ amount: 101 })).toMatchObject({ action: 'refuse', code: 'mismatched' })
  expect(await claim({ amount: 100 })).toMatchObject({ action: 'refuse', code: 'in_flight' })
})
