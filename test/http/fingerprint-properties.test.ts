import { isDeepStrictEqual } from 'node:util'
import fc from 'fast-check'
import { expect, test } from 'vitest'
import { computeRequestFingerprint } from '../../src/http/request/request-fingerprint.js'

/** Few leaves and names, so that two values are often equal but for one thing. */
const leaf = fc.constantFrom(
  null,
  true,
  false,
  0,
  1,
  -1,
  1.5,
  2 ** 53,
  Infinity,
  '',
  '0',
  '1',
  'a',
  'null',
  '\ud800',
  '😀',
  ',',
  '"',
)
const name = fc.constantFrom('a', 'b', '', '0', '__proto__', 'constructor', '\udc00', '{', ':')

const { value } = fc.letrec((tie) => ({
  value: fc.oneof({ maxDepth: 4, withCrossShrink: true }, leaf, tie('array'), tie('object')),
  array: fc.array(tie('value'), { maxLength: 3 }),
  object: fc.array(fc.tuple(name, tie('value')), { maxLength: 3 }).map(fromEntries),
}))

/** As a parser does it: `__proto__` becomes a member like any other. */
function fromEntries(entries: [string, unknown][]): object {
  return entries.reduce(
    (object, [member, content]) =>
      Object.defineProperty(object, member, { value: content, enumerable: true, writable: true, configurable: true }),
    {},
  )
}

function shuffled(content: unknown): unknown {
  if (Array.isArray(content)) return content.map(shuffled)
  if (typeof content !== 'object' || content === null) return content
  return fromEntries(
    Object.entries(content)
      .reverse()
      .map(([member, inner]) => [member, shuffled(inner)]),
  )
}

/** One place of the value, with something else in it. */
function changed(content: unknown, path: readonly number[], other: unknown): unknown {
  const [step, ...rest] = path
  if (step === undefined || typeof content !== 'object' || content === null) return other
  const names = Object.keys(content)
  const chosen = names[step % (names.length || 1)]
  if (chosen === undefined) return other
  if (Array.isArray(content))
    return content.map((item, i) => (String(i) === chosen ? changed(item, rest, other) : item))
  return fromEntries(
    Object.entries(content).map(([member, inner]) => [member, member === chosen ? changed(inner, rest, other) : inner]),
  )
}

/** Bodies that are parsed: an object or an array. A string or bytes count by their bytes. */
function of(content: unknown) {
  return computeRequestFingerprint('POST', '/payouts', { content })
}

test('two JSON values have the same fingerprint if and only if they are deeply equal, member order aside', () => {
  let equal = 0
  let different = 0
  fc.assert(
    fc.property(value, value, (a, b) => {
      const same = isDeepStrictEqual(a, b)
      same ? equal++ : different++
      expect(of(a) === of(b)).toBe(same)
      expect(of(shuffled(a))).toBe(of(a))
    }),
    { numRuns: 5_000 },
  )
  expect(Math.min(equal, different), 'a run that never met both cases has shown nothing').toBeGreaterThan(20)
})

test('a value that differs in one place only has another fingerprint', () => {
  let different = 0
  fc.assert(
    fc.property(value, fc.array(fc.nat(2), { maxLength: 4 }), value, (a, path, other) => {
      const b = changed(a, path, other)
      const same = isDeepStrictEqual(a, b)
      if (!same) different++
      expect(of(a) === of(b)).toBe(same)
    }),
    { numRuns: 5_000 },
  )
  expect(different).toBeGreaterThan(1_000)
})

test('any JSON value that was sent and parsed again, in another layout, has the same fingerprint', () => {
  fc.assert(
    fc.property(fc.jsonValue(), (sent) => {
      const [tight, wide] = [JSON.parse(JSON.stringify(sent)), JSON.parse(JSON.stringify(sent, null, 2))]
      expect(of(shuffled(wide))).toBe(of(tight))
      expect(of(tight)).toMatch(/^v1\.[\w-]{43}$/)
    }),
  )
})

test('two byte strings have the same fingerprint if and only if they are equal', () => {
  const bytes = fc.uint8Array({ maxLength: 3, max: 3 })
  fc.assert(
    fc.property(bytes, bytes, (a, b) => {
      const same = Buffer.from(a).equals(b)
      expect(computeRequestFingerprint('POST', '/', a) === computeRequestFingerprint('POST', '/', b)).toBe(same)
    }),
    { numRuns: 1_000 },
  )
})
