import { buildStorageKey, parseStorageKey } from 'once-per-key/core'
import { expect, test } from 'vitest'

test.each([
  { scope: 'acme', key: 'k' },
  { scope: 'a:b', key: 'c:d' },
  { namespace: 'webhook', scope: 'a%', key: '💶' },
])('the name %j is read from its storage key', (name) => {
  expect(parseStorageKey(buildStorageKey(name))).toEqual(name)
})

test.each(['k', 'a:b:c:d', 'acme:%', ''])('%j is no storage key', (text) => {
  expect(parseStorageKey(text)).toBeNull()
})
