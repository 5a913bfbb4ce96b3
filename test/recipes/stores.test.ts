import type { RowDataPacket } from 'mysql2/promise'
import type { Store } from 'once-per-key'
import { newSealingKey } from 'once-per-key/sealed'
import request from 'supertest'
import { afterAll, describe, expect, test, vi } from 'vitest'
import { read } from '../docs/pages.js'
import { startMariaDb } from '../support/mariadb-server.js'
import { startPostgres } from '../support/postgres-server.js'
import { startRedis } from '../support/redis-server.js'

/** A claim of a key, as an engine makes it. */
const claim = {
  token: 'token-1',
  scope: 'acme',
  fingerprint: 'f'.repeat(64),
  leaseMs: 30_000,
  retentionMs: 86_400_000,
  unknownOutcome: 'rerun',
} as const

async function expectClaims(store: Store) {
  expect(await store.begin('acme:order-1001', claim)).toMatchObject({ acquired: true, attempt: 1 })
}

test('the memory store of the page claims a key', async () => {
  const { store } = await import('../../examples/recipes/stores/memory.js')
  await expectClaims(store)
})

test('the sealed store of the page keeps no answer that can be read', async () => {
  const server = await startRedis()
  vi.stubEnv('REDIS_URL', `redis://127.0.0.1:${server.port}`)
  vi.stubEnv('SEALING_KEYS', `${newSealingKey()},${newSealingKey()}`)
  vi.resetModules()
  const { redis, store } = await import('../../examples/recipes/stores/sealed.js')
  await expectClaims(store)
  const { token, scope, fingerprint, retentionMs } = claim
  const own = { token, scope, fingerprint, retentionMs, attempt: 1, uncertain: false }
  const answer = { status: 201, statusMessage: '', headers: [], body: Buffer.from('DE99') }
  await store.complete('acme:order-1001', { ...own, answer })
  expect(await redis.get('payments:acme:order-1001')).not.toContain('DE99')
  expect(await store.inspect('acme:order-1001')).toMatchObject({ state: 'completed', answer })
  redis.disconnect()
  await server.close()
  vi.resetModules()
})

test('the Redis store of the page claims a key, under its prefix', async () => {
  const server = await startRedis()
  vi.stubEnv('REDIS_URL', `redis://127.0.0.1:${server.port}`)
  const { store, redis } = await import('../../examples/recipes/stores/redis.js')
  await expectClaims(store)
  expect(await redis.keys('*')).toEqual(['payments:acme:order-1001'])
  redis.disconnect()
  await server.close()
})

describe('the Postgres store of the page', async () => {
  const server = await startPostgres()
  afterAll(() => server.close())

  test('has its schema once it is imported, claims a key, and its record is found as the page finds it', async () => {
    vi.stubEnv('DATABASE_URL', server.url())
    const { store, pool } = await import('../../examples/recipes/stores/postgres.js')
    await expectClaims(store)
    const { rows } = await pool.query(read('examples/recipes/stores/look.sql'))
    expect(rows).toEqual([expect.objectContaining({ name: 'acme:order-1001', state: 'in-flight', attempt: '1' })])
    await pool.end()
  })
})

describe('the MySQL store of the page', async () => {
  const server = await startMariaDb()
  afterAll(() => server.close())

  test('has its tables once it is imported, and its record is found as the page finds it; the transaction has its effect once', async () => {
    vi.stubEnv('DATABASE_URL', await server.createDatabase('payments'))
    const { store, pool, application } = await import('../../examples/recipes/stores/mysql.js')
    await expectClaims(store)
    const [rows] = await pool.query<RowDataPacket[]>(read('examples/recipes/stores/look-mysql.sql'))
    expect(rows).toEqual([expect.objectContaining({ state: 'in-flight', attempt: 1, uncertain: 0 })])

    await pool.query('CREATE TABLE payouts (id VARCHAR(36) PRIMARY KEY, amount INT)')
    const { app } = await import('../../examples/recipes/transactions/mysql.js')
    for (const replayed of [undefined, 'true']) {
      const { status, headers } = await request(app).post('/payouts').set('Idempotency-Key', 'k').send({ amount: 5 })
      expect([status, headers['idempotent-replayed']]).toEqual([201, replayed])
    }
    const [payouts] = await pool.query<RowDataPacket[]>('SELECT amount FROM payouts')
    expect(payouts).toEqual([{ amount: 5 }])
    await Promise.all([pool.end(), application.end()])
  })
})
