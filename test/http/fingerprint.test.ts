import { createHash } from 'node:crypto'
import { readFileSync } from 'node:fs'
import { describe, expect, test } from 'vitest'
import { MAX_DEPTH } from '../../src/core/record/digest.js'
import { computeRequestFingerprint } from '../../src/http/request/request-fingerprint.js'

interface Golden {
  readonly name: string
  readonly method: string
  readonly target: string
  readonly json?: string
  readonly hex?: string
  readonly fingerprint: string
}

const GOLDEN: Golden[] = JSON.parse(readFileSync(new URL('./golden/fingerprints-v1.json', import.meta.url), 'utf8'))

function of(content: unknown): string | null {
  return computeRequestFingerprint('POST', '/payouts', content)
}

function ofJson(text: string): string | null {
  return of(JSON.parse(text))
}

test.each(GOLDEN)('the fingerprint of $name is frozen', ({ method, target, json, hex, fingerprint }) => {
  const content = json === undefined ? Buffer.from(hex ?? '', 'hex') : JSON.parse(json)
  expect(computeRequestFingerprint(method, target, content)).toBe(fingerprint)
})

describe('two JSON bodies have the same fingerprint', () => {
  test.each([
    { name: 'in another member order', a: '{"a":1,"b":{"c":2,"d":3}}', b: '{"b":{"d":3,"c":2},"a":1}' },
    { name: 'with other white space', a: '{"a":[1,2]}', b: ' {\n "a" : [ 1 ,\t2 ] } ' },
    { name: 'with other escapes', a: '{"\\u0061":"\\u00e4\\/"}', b: '{"a":"ä/"}' },
    { name: 'with numbers that count as the same when parsed', a: '[1.0,1e2,-0]', b: '[1,100,0]' },
    { name: 'with numbers beyond 2^53 that parse as the same', a: '9007199254740993', b: '9007199254740992' },
    { name: 'with the last of two members of one name', a: '{"a":1,"a":2}', b: '{"a":2}' },
  ])('$name', ({ a, b }) => {
    expect(ofJson(a)).toBe(ofJson(b))
  })

  test('where there is none: `undefined` in Express 5, `{}` in Express 4', () => {
    expect(of(undefined)).toBe(of({}))
  })
})

describe('two JSON bodies have different fingerprints', () => {
  test.each([
    { name: 'array order', a: '[1,2]', b: '[2,1]' },
    { name: 'a member more', a: '{"a":1}', b: '{"a":1,"b":null}' },
    { name: 'a value', a: '{"a":1}', b: '{"a":2}' },
    { name: 'number and string', a: '{"a":1}', b: '{"a":"1"}' },
    { name: 'null and its word', a: '[null]', b: '["null"]' },
    { name: 'true and its word', a: '[true]', b: '["true"]' },
    { name: 'false, null, 0, "" and {}', a: '[false]', b: '[null]' },
    { name: '{} and []', a: '{"a":{}}', b: '{"a":[]}' },
    { name: '[] and [[]]', a: '[]', b: '[[]]' },
    { name: '[1,2] and [12]', a: '[1,2]', b: '[12]' },
    { name: 'a comma inside a string', a: '["a","b"]', b: '["a\\",\\"b"]' },
    { name: 'the place of a member', a: '{"a":{"b":1},"c":2}', b: '{"a":{"b":1,"c":2}}' },
    { name: '1e400 and null', a: '[1e400]', b: '[null]' },
    { name: '1e400 and -1e400', a: '[1e400]', b: '[-1e400]' },
    { name: '1e400 and its word', a: '[1e400]', b: '["Infinity"]' },
    { name: '1e400 and the greatest number', a: '[1e400]', b: '[1.7976931348623157e308]' },
    { name: 'neighbours beyond 2^53', a: '9007199254740992', b: '9007199254740994' },
    { name: 'members named __proto__', a: '{"__proto__":{"a":1}}', b: '{"__proto__":{"a":2}}' },
    { name: 'a member named __proto__ and none', a: '{"__proto__":{"a":1}}', b: '{}' },
    { name: 'members named constructor, toJSON and toString', a: '{"toJSON":1,"constructor":2}', b: '{"toString":1}' },
    { name: 'lone surrogates', a: '["\\ud800"]', b: '["\\ud801"]' },
    { name: 'a lone surrogate and U+FFFD', a: '["\\ud800"]', b: '["\\ufffd"]' },
    { name: 'a lone surrogate and its escape as text', a: '["\\ud800"]', b: '["\\\\ud800"]' },
    { name: 'a name with a lone surrogate', a: '{"\\udc00":1}', b: '{"\\udc01":1}' },
    { name: 'composed and decomposed letters', a: '["\\u00e4"]', b: '["a\\u0308"]' },
    { name: 'lone surrogates as the whole body', a: '"\\ud800"', b: '"\\ud801"' },
    { name: 'a lone surrogate as the whole body, and U+FFFD', a: '"\\ud800"', b: '"\\ufffd"' },
  ])('$name', ({ a, b }) => {
    expect(ofJson(a)).not.toBe(ofJson(b))
  })
})

test('method, path and query count, and cannot be shifted into each other', () => {
  const requests = [
    ['POST', '/a', {}],
    ['PUT', '/a', {}],
    ['POST', '/b', {}],
    ['POST', '/a?', {}],
    ['POST', '/a?x=1', {}],
    ['POST', '/a?x=1&y=2', {}],
    ['POST', '/a?y=2&x=1', {}], // As sent.
    ['POST', '/a?x=%31', {}],
    ['POST', '/a\njson', {}],
    ['POST', '/a', '\njson\n{}'],
    ['POST', '/a', '{}'],
    ['POST', '/a', ''],
    // Of the same length, with characters that have no ASCII form, and long.
    ['POST', '/é', {}],
    ['POST', '/ü', {}],
    ['POST', `/${'x'.repeat(20_000)}1`, {}],
    ['POST', `/${'x'.repeat(20_000)}2`, {}],
  ] as const
  const prints = requests.map(([method, target, content]) => computeRequestFingerprint(method, target, content))
  expect(new Set(prints).size).toBe(requests.length)
})

describe('a large body is hashed as one text', () => {
  const line = { amount: 1299, name: 'Zoë 🦊 "x"', sku: 'part' }
  const names = Array.from({ length: 3_000 }, (_, i) => 'n'.repeat(i % 130) + (i < 130 ? '' : `"é${i}`)).sort()
  test.each([
    ['of many lines', Array.from({ length: 2_000 }, () => line)],
    ['of many members', Object.fromEntries(names.map((name, i) => [name, i]))],
    ['of one long string', { text: '🦊é'.repeat(50_000) }],
    ['of texts of any length', Array.from({ length: 300 }, (_, i) => 'é'.repeat(i))],
  ])('%s', (_name, body) => {
    // Members stand in the order of their names here, so their canonical text is what JSON.stringify makes.
    const text = `POST 8 /payouts\njson\n${JSON.stringify(body)}`
    const expected = `v1.${createHash('sha256').update(text).digest('base64url')}`
    expect([of(body), of(body)]).toEqual([expected, expected])
  })
})

describe('bytes and text', () => {
  test('count by their bytes, whatever their type', () => {
    const bytes = Buffer.from('päyload')
    const slice = Buffer.concat([Buffer.from('__'), bytes]).subarray(2)
    for (const same of [new Uint8Array(bytes), slice, 'päyload']) expect(of(same)).toBe(of(bytes))
  })

  test('count each byte, and are no JSON', () => {
    const bodies = [
      Buffer.from('{}'),
      Buffer.from('{ }'),
      Buffer.from([0xff]),
      Buffer.from([0xfe]),
      Buffer.alloc(0),
      {},
    ]
    expect(new Set(bodies.map(of)).size).toBe(bodies.length)
  })
})

describe('a body nested', () => {
  const nested = (levels: number, wrap: (inner: unknown) => unknown) => {
    let body: unknown = 1
    for (let i = 0; i < levels; i++) body = wrap(body)
    return body
  }
  const WRAPS = [
    { name: 'arrays', wrap: (inner: unknown) => [inner] },
    { name: 'objects', wrap: (inner: unknown) => ({ a: inner }) },
    { name: 'objects among others', wrap: (inner: unknown) => ({ a: 1, b: 'x', c: inner }) },
  ]

  test.each(WRAPS)('1,000 levels deep has a fingerprint, 1,001 levels deep has none: $name', ({ wrap }) => {
    expect(MAX_DEPTH).toBe(1_000)
    expect(of(nested(1_000, wrap))).toMatch(/^v1\./)
    expect(of(nested(1_001, wrap))).toBeNull()
  })

  test('100,000 levels deep is not walked to its end', () => {
    let visited = 0
    const counting = (levels: number): unknown =>
      new Proxy([0], {
        get(target, property, receiver) {
          if (property !== '0') return Reflect.get(target, property, receiver)
          visited++
          return levels === 0 ? 0 : counting(levels - 1)
        },
      })
    expect(of(counting(100_000))).toBeNull()
    expect(visited).toBeLessThanOrEqual(MAX_DEPTH)
    expect(ofJson(`${'['.repeat(100_000)}${']'.repeat(100_000)}`)).toBeNull()
  })

  test('in itself, or in its own toJSON, is too deep', () => {
    const cyclic: Record<string, unknown> = {}
    cyclic.self = cyclic
    class Endless {
      toJSON() {
        return new Endless()
      }
    }
    expect(of(cyclic)).toBeNull()
    expect(of(new Endless())).toBeNull()
  })
})

describe('what is not JSON', () => {
  test.each([
    { name: 'a Map', value: new Map([['a', 1]]), seen: 'an object (Map)' },
    { name: 'a Set', value: new Set([1]), seen: 'an object (Set)' },
    { name: 'a RegExp', value: /a/, seen: 'an object (RegExp)' },
    { name: 'an Error', value: new Error('a'), seen: 'an object (Error)' },
    { name: 'a promise', value: Promise.resolve(1), seen: 'an object (Promise)' },
    { name: 'an ArrayBuffer', value: new ArrayBuffer(1), seen: 'an object (ArrayBuffer)' },
    { name: 'other numbers in a row', value: new Float64Array(1), seen: 'an object (Float64Array)' },
    { name: 'a boxed number', value: new Number(1), seen: 'an object (Number)' },
    { name: 'a function', value: () => 1, seen: 'a function' },
    { name: 'a symbol', value: Symbol('a'), seen: 'a symbol' },
  ])('is misuse, not a value of its own: $name, by itself or inside', ({ value, seen }) => {
    for (const content of [value, [value], { a: { b: value } }]) {
      expect(() => of(content)).toThrow(
        expect.objectContaining({ code: 'fingerprint_required', message: expect.stringContaining(seen) }),
      )
    }
  })

  test('counts as what it says in toJSON', () => {
    expect(of({ at: new Date(0) })).toBe(of({ at: '1970-01-01T00:00:00.000Z' }))
    expect(of({ hash: Buffer.from([1, 2]) })).toBe(of({ hash: { type: 'Buffer', data: [1, 2] } }))
  })

  test('counts by its own members if it has no prototype', () => {
    expect(of(Object.assign(Object.create(null), { a: 1 }))).toBe(of({ a: 1 }))
  })

  test('undefined, NaN and bigints are values of their own', () => {
    const values = [undefined, null, Number.NaN, 0, 10n ** 30n, 10n ** 30n + 1n, 'NaN']
    expect(new Set(values.map((value) => of([value]))).size).toBe(values.length)
  })
})

test('no body and `{}` have one fingerprint, as Express 4 shows both alike; null, [] and no bytes have others', () => {
  const none = computeRequestFingerprint('POST', '/payouts', undefined)
  expect(computeRequestFingerprint('POST', '/payouts', {})).toBe(none)
  for (const other of [null, [], '', new Uint8Array(0)])
    expect(computeRequestFingerprint('POST', '/payouts', other)).not.toBe(none)
})
