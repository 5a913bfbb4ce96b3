import fc from 'fast-check'
import { expect, test } from 'vitest'
import { parseWebhookEvent } from '../../src/webhooks/event.js'

test('every address of the common form is taken', () => {
  fc.assert(fc.property(fc.emailAddress(), isTaken))
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
])('a real address is taken: %s', (address) => {
  expect(isTaken(address)).toBe(true)
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
])('what is no address is not taken: %j', (text) => {
  expect(isTaken(text)).toBe(false)
})

// A pattern that goes back and forth would take days here, and the test its time limit.
test('a text of a million characters is judged in one pass', () => {
  for (const text of [`${'a.'.repeat(500_000)}@`, `a@${'b.'.repeat(500_000)}`, `"${'" '.repeat(500_000)}`]) {
    expect(isTaken(text)).toBe(false)
  }
})

function isTaken(userNotificationEmail: string): boolean {
  try {
    const payload = { userNotificationEmail }
    parseWebhookEvent({ id: 'evt_1', type: 'mandate_setup_started', date: '2026-01-01', payload })
    return true
  } catch {
    return false
  }
}
