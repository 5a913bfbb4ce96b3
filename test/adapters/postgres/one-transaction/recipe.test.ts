import request from 'supertest'
import { expect, test } from 'vitest'
import { payoutsApp } from '../../../../examples/recipes/transactions/one-transaction.js'
import { openPool, openStore } from '../open-store.js'

test('the page’s first example has its effect once', async () => {
  const { url, pool, query } = await openStore()
  await query('CREATE TABLE payouts (id bigint GENERATED ALWAYS AS IDENTITY, amount integer)')
  const app = await payoutsApp(openPool(url), pool)
  const send = () => request(app).post('/payouts').set('Idempotency-Key', 'k').send({ amount: 5 })
  for (const replayed of [undefined, 'true']) {
    const { status, body, headers } = await send()
    expect([status, body, headers['idempotent-replayed']]).toEqual([201, { id: '1' }, replayed])
  }
  expect(await query('SELECT amount FROM payouts')).toEqual([{ amount: 5 }])
})
