import { expect, test } from 'vitest'
import { SettingInvalid, settingsOf } from '../../examples/payments/settings.js'

test('without any variable: port 3000, and no Redis', () => {
  expect(settingsOf({})).toEqual({ port: 3_000 })
  expect(settingsOf({ PORT: '', REDIS_URL: '', DEMO_LEASE_MS: '' })).toEqual({ port: 3_000 })
})

test.each([
  ['redis://localhost', { host: 'localhost', port: 6_379, db: 0 }],
  ['redis://localhost/', { host: 'localhost', port: 6_379, db: 0 }],
  ['redis://10.0.0.1:7000/3', { host: '10.0.0.1', port: 7_000, db: 3 }],
  ['redis://[::1]:7000', { host: '::1', port: 7_000, db: 0 }],
  ['redis://my_redis', { host: 'my_redis', port: 6_379, db: 0 }],
  ['redis://:p%40ss@host', { host: 'host', port: 6_379, db: 0, password: 'p@ss' }],
  ['rediss://user:secret@host:1', { host: 'host', port: 1, db: 0, username: 'user', password: 'secret', tls: {} }],
])('REDIS_URL=%s', (url, place) => {
  expect(settingsOf({ REDIS_URL: url }).redis).toEqual(place)
})

test.each([
  'localhost:6379',
  'http://:secret@localhost',
  'redis:',
  'redis://',
  'redis://:secret@',
  'redis://:secret@host:65536',
  'redis://:secret@host:0',
  'redis://:secret@host:x',
  'redis://:secret@host/first',
  'redis://:secret@host/1/2',
  'redis://:secret@host?family=6',
  'redis://:secret@host#1',
  'redis://:secret%@host',
  'redis://:secret@one,two:1,three:2',
  'secret',
])('REDIS_URL=%s is refused, and its password is not shown', (url) => {
  const refusal = errorOf(() => settingsOf({ REDIS_URL: url }))
  expect(refusal).toBeInstanceOf(SettingInvalid)
  expect(refusal.message).toMatch(/^REDIS_URL must be like .*\.$/)
  expect(refusal.message).not.toContain('secret')
})

test.each(['999', '60001', '1e3', '-1000', '1000.5', 'short'])('DEMO_LEASE_MS=%s is refused', (given) => {
  expect(errorOf(() => settingsOf({ DEMO_LEASE_MS: given })).message).toBe(
    `DEMO_LEASE_MS must be a whole number from 1000 to 60000; seen: "${given}".`,
  )
})

test('DEMO_WEBHOOK_PAUSE_MS shortens the pauses between tries', () => {
  expect(settingsOf({ DEMO_WEBHOOK_PAUSE_MS: '200' }).firstPauseMs).toBe(200)
  expect(errorOf(() => settingsOf({ DEMO_WEBHOOK_PAUSE_MS: '0' })).message).toContain('DEMO_WEBHOOK_PAUSE_MS must be')
})

test('DEMO_LEASE_MS shortens the lease', () => {
  expect(settingsOf({ DEMO_LEASE_MS: '1000' }).leaseMs).toBe(1_000)
})

function errorOf(fn: () => unknown): Error {
  try {
    fn()
  } catch (error) {
    return error as Error
  }
  throw new Error('it was accepted')
}
