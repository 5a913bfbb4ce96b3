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

test('of requests that race, one has its effect, and the others are told', async () => {
  const { url, pool, query } = await openStore()
  await query('CREATE TABLE payouts (id bigint GENERATED ALWAYS AS IDENTITY, amount integer)')
  const app = await payoutsApp(openPool(url), pool)
  const send = () => request(app).post('/payouts').set('Idempotency-Key', 'k').send({ amount: 5 })
  const told = await Promise.all([send(), send(), send(), send()])
  for (const { status, body } of told) {
    if (status === 201) expect(body).toEqual({ id: expect.any(String) })
    else expect([status, body.code]).toEqual([409, 'in_flight'])
  }
  expect(await query('SELECT amount FROM payouts')).toEqual([{ amount: 5 }])
})
