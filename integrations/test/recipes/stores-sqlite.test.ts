import request from 'supertest'
import { expect, onTestFinished, test, vi } from 'vitest'
import { newFolder } from '../../../test/adapters/sqlite/open-store.js'
import { read } from '../../../test/docs/pages.js'

const claim = {
  token: 'token-1',
  scope: 'acme',
  fingerprint: 'f'.repeat(64),
  leaseMs: 30_000,
  retentionMs: 86_400_000,
  unknownOutcome: 'rerun',
} as const

test('the SQLite store of the page claims a key, and its record is found as the page finds it', async () => {
  const { folder, remove } = newFolder()
  onTestFinished(remove)
  vi.stubEnv('SQLITE_FILE', `${folder}/payments.db`)
  const { store, database } = await import('../../recipes/stores/sqlite.js')
  expect(await store.begin('acme:order-1001', claim)).toMatchObject({ acquired: true, attempt: 1 })
  const rows = database.prepare(read('integrations/recipes/stores/look-sqlite.sql')).all()
  expect(rows).toEqual([expect.objectContaining({ key: 'acme:order-1001', state: 'in-flight', attempt: 1 })])
  database.close()
})

test('the transaction of the page makes a payout once, with its record', async () => {
  const { folder, remove } = newFolder()
  onTestFinished(remove)
  vi.resetModules()
  vi.stubEnv('SQLITE_FILE', `${folder}/payments.db`)
  const { app } = await import('../../recipes/stores/sqlite-transaction.js')
  const { database } = await import('../../recipes/stores/sqlite.js')
  const pay = () => request(app).post('/payouts').set('Idempotency-Key', 'order-1001').send({ amount: 5000 })
  const [first, retry] = [await pay(), await pay()]
  expect([first.status, retry.status, retry.headers['idempotent-replayed']]).toEqual([201, 201, 'true'])
  expect(retry.body).toEqual(first.body)
  expect(database.prepare('SELECT * FROM payouts').all()).toEqual([{ id: first.body.id, amount: 5000 }])
  database.close()
})
