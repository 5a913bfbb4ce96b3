import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import { buildStorageKey } from '../../src/core/record/identity.js'
import { readKey, readKeyHeader } from '../../src/http/request/key.js'

/** As Node hands a header's bytes over: a character a byte. */
function wire(bytes: Uint8Array | string, encoding: BufferEncoding = 'utf8'): string {
  return (typeof bytes === 'string' ? Buffer.from(bytes, encoding) : Buffer.from(bytes)).toString('latin1')
}

const ASTRAL = '😀'

describe('a key in the header', () => {
  test.each([
    { name: 'a UUID', line: '8e03978e-40d5-43e8-bc93-6894a57f9324', key: '8e03978e-40d5-43e8-bc93-6894a57f9324' },
    { name: 'any reference', line: 'Invoice 2026/17: {a}%3A', key: 'Invoice 2026/17: {a}%3A' },
    { name: 'valid UTF-8', line: wire('Rechnung-ä-☃-😀'), key: 'Rechnung-ä-☃-😀' },
    { name: 'Latin-1 that is not UTF-8', line: wire('Rechnung-ä', 'latin1'), key: 'Rechnung-ä' },
    { name: 'text that is beyond Latin-1 already', line: '☃', key: '☃' },
    { name: 'an RFC 8941 string', line: '"abc"', key: 'abc' },
    { name: 'one with escapes', line: '"a\\"b\\\\c"', key: 'a"b\\c' },
    { name: 'one with spaces at its ends', line: '" a "', key: ' a ' },
    { name: 'a string inside a string', line: '"\\"abc\\""', key: '"abc"' },
    { name: 'an open quote', line: '"abc', key: '"abc' },
    { name: 'a lone quote', line: '"', key: '"' },
    { name: 'a quote in the middle', line: '"a"b"', key: '"a"b"' },
    { name: 'an escape of nothing', line: '"a\\b"', key: '"a\\b"' },
    { name: 'an escape at the end', line: '"a\\"', key: '"a\\"' },
    { name: 'an RFC 8941 string with parameters', line: '"abc";p=1', key: '"abc";p=1' },
    { name: 'a string with what RFC 8941 forbids in it', line: wire('"ä"'), key: '"ä"' },
    { name: 'a parameter right behind', line: '"abc";a=1', key: '"abc";a=1' },
    { name: 'a word that only begins like an accident', line: 'undefined-1', key: 'undefined-1' },
    { name: 'an accident in another case', line: 'Null', key: 'Null' },
    { name: 'two RFC 8941 strings', line: '"a", "b"', key: '"a", "b"' },
    { name: '255 characters', line: 'x'.repeat(255), key: 'x'.repeat(255) },
    { name: '255 characters in quotes', line: `"${'x'.repeat(255)}"`, key: 'x'.repeat(255) },
    { name: '255 astral characters', line: wire(ASTRAL.repeat(255)), key: ASTRAL.repeat(255) },
    { name: '255 characters of two bytes', line: wire('ä'.repeat(255)), key: 'ä'.repeat(255) },
  ])('is read: $name', ({ line, key }) => {
    expect(readKeyHeader({ origin: 'lines', values: [line] })).toEqual({ key })
  })

  const NOT_KEYS = [
    { name: 'empty', lines: [''], why: 'empty' },
    { name: 'a quoted nothing', lines: ['""'], why: 'empty' },
    { name: '256 characters', lines: ['x'.repeat(256)], why: 'longer than 255' },
    { name: '256 characters in quotes', lines: [`"${'x'.repeat(256)}"`], why: 'longer than 255' },
    { name: '256 astral characters', lines: [wire(ASTRAL.repeat(256))], why: 'longer than 255' },
    { name: 'two lines', lines: ['a', 'b'], why: 'more than once' },
    { name: 'two equal lines', lines: ['a', 'a'], why: 'more than once' },
    { name: 'a second line that is empty', lines: ['a', ''], why: 'more than once' },
    { name: 'half of a surrogate pair', lines: ['a\ud800'], why: 'surrogate' },
    ...['undefined', 'null', 'NaN', '[object Object]', '[object Promise]'].flatMap((word) => [
      { name: `the word ${word}`, lines: [word], why: `the word "${word}"` },
      { name: `the word ${word} in quotes`, lines: [`"${word}"`], why: `the word "${word}"` },
    ]),
  ]
  test.each(NOT_KEYS)('is refused: $name', ({ lines, why }) => {
    expect(readKeyHeader({ origin: 'lines', values: lines })).toEqual({ invalid: expect.stringContaining(why) })
  })

  test('is refused with any control character, C0, DEL and C1, wherever it stands', () => {
    const codes = [...Array(0x20).keys(), ...Array.from({ length: 0x21 }, (_, i) => 0x7f + i)]
    for (const code of codes) {
      const control = String.fromCharCode(code)
      const sent = [`a${control}b`, `${control}b`, wire(`ä${control}`), `"a${control}"`]
      for (const line of sent) {
        expect(readKeyHeader({ origin: 'lines', values: [line] }), `U+${code.toString(16)}`).toEqual({
          invalid: expect.stringContaining('control'),
        })
      }
    }
  })

  test('never names itself in what is said of it', () => {
    const secret = 'secret-reference-'
    for (const bad of [secret.repeat(20), `${secret}\t`, `${secret}\ud800`]) {
      expect(readKey(bad)).toEqual({ invalid: expect.not.stringContaining('secret') })
    }
  })

  test('is itself, bare or quoted: every printable ASCII text that is no quoted string', () => {
    const printable = fc.string({
      unit: fc.integer({ min: 0x20, max: 0x7e }).map((c) => String.fromCharCode(c)),
      minLength: 1,
    })
    fc.assert(
      fc.property(printable, (key) => {
        const quoted = `"${key.replace(/["\\]/g, '\\$&')}"`
        expect(readKeyHeader({ origin: 'lines', values: [quoted] })).toEqual({ key })
        if (!(key.startsWith('"') && key.endsWith('"')))
          expect(readKeyHeader({ origin: 'lines', values: [key] })).toEqual({ key })
      }),
    )
  })

  test('is the text whose UTF-8 bytes were sent, whatever the text', () => {
    const text = fc.string({ unit: 'binary', minLength: 1, maxLength: 100 }).filter((t) => t.isWellFormed())
    fc.assert(
      fc.property(text, (key) => {
        if (/\p{Cc}/u.test(key) || /^".*"$/s.test(key)) return
        expect(readKeyHeader({ origin: 'lines', values: [wire(key)] })).toEqual({ key })
      }),
    )
  })

  test('is read without a crash, whatever the bytes', () => {
    fc.assert(
      fc.property(fc.uint8Array({ maxLength: 600 }), (bytes) => {
        const reading = readKeyHeader({ origin: 'lines', values: [wire(bytes)] })
        if ('key' in reading) expect([...reading.key].length).toBeLessThanOrEqual(255)
        else expect(reading.invalid).not.toBe('')
      }),
    )
  })
})

describe('the storage key', () => {
  const text = fc.string({ unit: 'binary', maxLength: 20 }).filter((t) => t.isWellFormed())

  test('is injective: two (scope, key) pairs never meet', () => {
    const part = fc.oneof(text, fc.string({ unit: fc.constantFrom(':', '%', '3', 'A', 'a', '/'), maxLength: 6 }))
    fc.assert(
      fc.property(part, part, part, part, (scopeA, keyA, scopeB, keyB) => {
        const same = scopeA === scopeB && keyA === keyB
        expect(buildStorageKey({ scope: scopeA, key: keyA }) === buildStorageKey({ scope: scopeB, key: keyB })).toBe(
          same,
        )
      }),
      { numRuns: 2_000 },
    )
  })

  test('tells both parts back, has one colon, and no hash tag of a cluster', () => {
    fc.assert(
      fc.property(text, text, (scope, key) => {
        const stored = buildStorageKey({ scope, key })
        expect(stored.split(':').map(decodeURIComponent)).toEqual([scope, key])
        expect(stored).not.toMatch(/[{}]/)
      }),
    )
  })

  test.each([
    { scope: 'acme', key: 'order-17', stored: 'acme:order-17' },
    { scope: 'a:b', key: 'c', stored: 'a%3Ab:c' },
    { scope: 'a', key: 'b:c', stored: 'a:b%3Ac' },
    { scope: '{acme}', key: 'ä', stored: '%7Bacme%7D:%C3%A4' },
  ])('of $scope and $key is $stored', ({ scope, key, stored }) => {
    expect(buildStorageKey({ scope, key })).toBe(stored)
  })
})
