import type { RequestHandler } from 'express'
import { Redis } from 'ioredis'
import { afterAll, beforeEach, describe, expect, test } from 'vitest'
import { movedApp } from '../../examples/recipes/from-node-idempotency.js'
import { startRedis } from '../support/redis-server.js'
import { counted, served } from './served.js'

const server = await startRedis()
const client = new Redis(server.port)
afterAll(async () => {
  client.disconnect()
  await server.close()
})
beforeEach(() => client.flushall())

const start = (createPayout: RequestHandler) => served(movedApp({ client, createPayout }))

describe('an application that comes from @node-idempotency', () => {
  test('gives a retry the first answer', async () => {
    const payout = counted()
    const { post } = await start(payout.handler)
    const first = await post()
    expect(await post()).toMatchObject({ status: 201, replayed: true, text: first.text })
    expect(payout.runs()).toBe(1)
    expect(await client.keys('*')).toEqual(['once:mer_acme:order-1'])
  })

  test('takes the order of members for no difference, and another body for one, with 422 as before', async () => {
    const { post } = await start(counted().handler)
    await post({ body: { amount: 100, currency: 'EUR' } })
    expect(await post({ body: { currency: 'EUR', amount: 100 } })).toMatchObject({ replayed: true })
    const other = await post({ body: { amount: 200, currency: 'EUR' } })
    expect([other.status, JSON.parse(other.text).code]).toEqual([422, 'mismatched'])
  })

  test('runs again after a failure, which is not replayed any more', async () => {
    let runs = 0
    const { post } = await start((_req, res) => void res.status(++runs === 1 ? 500 : 201).json({ runs }))
    expect(await post()).toMatchObject({ status: 500 })
    expect(await post()).toMatchObject({ status: 201, replayed: false })
  })

  test('refuses a key that was used with another query, where it was another key before', async () => {
    const { post } = await start(counted().handler)
    await post()
    expect(await post({ path: '/payouts?draft=1' })).toMatchObject({ status: 422 })
  })

  test('takes requests without a key, and keys of at most 255 characters', async () => {
    const { post } = await start(counted().handler)
    expect(await post({ key: null })).toMatchObject({ status: 201 })
    expect(await post({ key: 'x'.repeat(255) })).toMatchObject({ status: 201 })
    expect(await post({ key: 'x'.repeat(256) })).toMatchObject({ status: 400 })
  })

  test('keeps the key of one merchant from another', async () => {
    const payout = counted()
    const { post } = await start(payout.handler)
    await post()
    await post({ headers: { Authorization: 'Bearer demo_globex' } })
    expect(payout.runs()).toBe(2)
  })
})
