import { IdempotencyError } from 'once-per-key/core'
import { expect, test } from 'vitest'
import { describeKind } from '../../src/core/errors.js'

test('an error says its name, its code, what to do, where to read on, and why', () => {
  const cause = new Error('cause')
  const error = new IdempotencyError('scope_invalid', 'Do this.', { cause })
  expect(error).toBeInstanceOf(Error)
  expect([error.name, error.code, error.message, error.cause]).toEqual([
    'IdempotencyError',
    'scope_invalid',
    'Do this. See once-per-key/docs/errors.md#scope_invalid',
    cause,
  ])
  expect(String(error)).toBe('IdempotencyError: Do this. See once-per-key/docs/errors.md#scope_invalid')
})

test('an error without a cause shows none', () => {
  expect('cause' in new IdempotencyError('scope_invalid', 'Do this.', { cause: undefined })).toBe(false)
})

test.each([
  { value: undefined, kind: 'undefined' },
  { value: null, kind: 'null' },
  { value: 'secret', kind: 'a string' },
  { value: 1, kind: 'a number' },
  { value: 1n, kind: 'a bigint' },
  { value: Symbol('secret'), kind: 'a symbol' },
  { value: () => 'secret', kind: 'a function' },
  { value: ['secret'], kind: 'an array' },
  { value: { secret: 1 }, kind: 'an object (Object)' },
  { value: new Map(), kind: 'an object (Map)' },
  { value: Object.create(null), kind: 'an object (without prototype)' },
  { value: JSON.parse('{"constructor":{"name":"secret"}}'), kind: 'an object (Object)' },
  { value: JSON.parse('{"constructor":{"name":{"toString":1}}}'), kind: 'an object (Object)' },
  { value: Object.create({ constructor: null }), kind: 'an object' },
  { value: Object.create({ constructor: { name: 1 } }), kind: 'an object' },
])('a value is named by its kind, never by its content: $kind', ({ value, kind }) => {
  expect(describeKind(value)).toBe(kind)
})
