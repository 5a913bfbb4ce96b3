import { expect, test } from 'vitest'
import { SettingInvalid, settingsOf } from '../../examples/payments/settings.js'

test('without any variable: port 3000 of this machine alone, and no Redis', () => {
  const settings = { port: 3_000, host: '127.0.0.1' }
  expect(settingsOf({})).toEqual(settings)
  expect(settingsOf({ PORT: '', HOST: '', REDIS_URL: '', DEMO_LEASE_MS: '', DEMO_WEBHOOK_LOOPBACK: '' })).toEqual(
    settings,
  )
})

test.each(['0.0.0.0', '::', '::1', 'localhost', 'my-machine.example'])('HOST=%s', (host) => {
  expect(settingsOf({ HOST: host }).host).toBe(host)
})

test.each(['[::1]', 'http://localhost', 'a b', 'localhost/'])('HOST=%s is refused', (host) => {
  expect(errorOf(() => settingsOf({ HOST: host })).message).toBe(
    `HOST must be an address or a name of this machine, such as 127.0.0.1 or 0.0.0.0; seen: "${host}".`,
  )
})

test('DEMO_WEBHOOK_LOOPBACK is true, or absent', () => {
  expect(settingsOf({ DEMO_WEBHOOK_LOOPBACK: 'true' }).mayReachLoopback).toBe(true)
  expect(errorOf(() => settingsOf({ DEMO_WEBHOOK_LOOPBACK: '1' })).message).toBe(
    'DEMO_WEBHOOK_LOOPBACK must be true, or absent; seen: "1".',
  )
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
    `DEMO_LEASE_MS must be an integer from 1000 to 60000; seen: "${given}".`,
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

test.each(['postgres://localhost/payments', 'postgresql://user:secret@10.0.0.1:5433/payments?sslmode=require'])(
  'DATABASE_URL=%s',
  (url) => {
    expect(settingsOf({ DATABASE_URL: url }).databaseUrl).toBe(url)
  },
)

test.each(['localhost:5432', 'mysql://:secret@localhost', 'postgres://', 'secret'])(
  'DATABASE_URL=%s is refused, and its password is not shown',
  (url) => {
    const refusal = errorOf(() => settingsOf({ DATABASE_URL: url }))
    expect(refusal).toBeInstanceOf(SettingInvalid)
    expect(refusal.message).toBe('DATABASE_URL must be like postgres://user:password@localhost:5432/payments.')
  },
)

test('SQLITE_FILE names a file', () => {
  expect(settingsOf({ SQLITE_FILE: 'payments.db' }).sqliteFile).toBe('payments.db')
  expect(settingsOf({ SQLITE_FILE: '' })).not.toHaveProperty('sqliteFile')
})

test('records are in one place', () => {
  const places = {
    REDIS_URL: 'redis://localhost',
    DATABASE_URL: 'postgres://localhost/payments',
    SQLITE_FILE: 'payments.db',
  }
  for (const name of Object.keys(places)) {
    const two = { ...places, [name]: '' }
    expect(errorOf(() => settingsOf(two)).message).toBe('Set one of REDIS_URL, DATABASE_URL and SQLITE_FILE.')
  }
})
