import fc from 'fast-check'
import { looksLikeEmailAddress } from 'once-per-key/webhooks'
import { expect, test } from 'vitest'

test('every address of the common form looks like one', () => {
  fc.assert(fc.property(fc.emailAddress(), looksLikeEmailAddress))
})

test.each([
  'ada@example.com',
  'ada+webhooks@mail.example.co.uk',
  "o'brien!#$%&*/=?^_`{|}~-@example.com",
  'first..last.@docomo.ne.jp',
  '用户@例子.公司',
  'jörg@müller.example',
  'ada@xn--bcher-kva.example',
  'root@localhost',
  '"Ada Lovelace"@example.com',
  'ada@[192.0.2.1]',
  'ada@[IPv6:2001:db8::1]',
  `${'a'.repeat(64)}@${'b'.repeat(63)}.example`,
])('a real address looks like one: %s', (address) => {
  expect(looksLikeEmailAddress(address)).toBe(true)
})

test.each([
  '',
  ' ',
  'yes',
  'example.com',
  '@example.com',
  'ada@',
  'ada@@example.com',
  'ada@home@example.com',
  'ada@example.com, bob@example.com',
  'ada@example.com,bob',
  'ada;bob@example.com',
  'Ada Lovelace <ada@example.com>',
  '<ada@example.com>',
  'mailto:ada@example.com',
  'ada @example.com',
  'ada@exam ple.com',
  ' ada@example.com',
  'ada@example.com\n',
  'ada\u0000@example.com',
  'ada@example..com',
  'ada@.example.com',
  'ada@example.com.',
  'ada@[]',
])('what is no bare address does not: %j', (text) => {
  expect(looksLikeEmailAddress(text)).toBe(false)
})

test.each([null, undefined])('what is absent looks like none: %s', (address) => {
  expect(looksLikeEmailAddress(address)).toBe(false)
})

// A pattern that goes back and forth would take days here, and the test its time limit.
test('a text of a million characters is judged in one pass', () => {
  for (const text of [`${'a.'.repeat(500_000)}@`, `a@${'b.'.repeat(500_000)}`, `"${'" '.repeat(500_000)}`]) {
    expect(looksLikeEmailAddress(text)).toBe(false)
  }
})
