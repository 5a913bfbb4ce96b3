import supertest from 'supertest'
import { expect, test } from 'vitest'
import { resolvers } from '../../examples/recipes/graphql.js'
import { app } from '../../examples/recipes/guests.js'

const checkout = (shopper: string, amount = 100) =>
  supertest(app).post('/checkout').set({ 'X-Shopper': shopper, 'Idempotency-Key': 'k' }).send({ amount })

test('a guest’s retry is replayed, two guests never meet, and nobody pays without a cart', async () => {
  const first = await checkout('cart 1')
  const retry = await checkout('cart 1')
  expect([first.status, retry.headers['idempotent-replayed'], retry.body]).toEqual([201, 'true', first.body])
  for (const other of ['cart 2', 'account 1']) {
    const { status, headers, body } = await checkout(other)
    expect([status, headers['idempotent-replayed'], body.order !== first.body.order]).toEqual([201, undefined, true])
  }
  expect((await checkout('')).status).toBe(401)
})

test('a mutation of GraphQL is done once, and a refusal says what to do', async () => {
  const { createPayment } = resolvers.Mutation
  const pay = (amount: number, accountId = 'acme') => createPayment(undefined, { key: 'k', amount }, { accountId })
  const first = await pay(100)
  expect(await pay(100)).toEqual(first)
  expect(await pay(100, 'globex')).not.toEqual(first)
  await expect(pay(200)).rejects.toMatchObject({ extensions: { code: 'mismatched', retryAfterMs: null } })
})
