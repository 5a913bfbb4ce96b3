import express from 'express'
import { idempotency } from 'once-per-key'
import { MemoryStore } from 'once-per-key/memory'
import request from 'supertest'
import { describe, expect, test } from 'vitest'
import { unknownOutcomes } from '../../examples/recipes/admin.js'

/** A service whose bank times out once for each key, and the page of its operators. */
function service() {
  const once = idempotency({ store: new MemoryStore(), scope: () => 'acme', unknownOutcome: 'refuse' })
  const app = express()
  app.use('/admin/payments', unknownOutcomes(once, 'secret'))
  app.post('/payouts', express.json(), once, (_req, res) => {
    res.status(504).json({ error: 'the bank did not answer' })
  })
  const pay = (key: string) => request(app).post('/payouts').set('Idempotency-Key', key).send({ amount: 1 })
  const admin = (path: string, token = 'secret') => ({
    get: () => request(app).get(`/admin/payments${path}`).set('Authorization', `Bearer ${token}`),
    post: (body: object) =>
      request(app).post(`/admin/payments${path}`).set('Authorization', `Bearer ${token}`).send(body),
  })
  return { app, pay, admin }
}

describe('the page of operators', () => {
  test('shows what awaits them, settles it by their word, and the client gets what they said', async () => {
    const { pay, admin } = service()
    await pay('order-1')
    expect((await pay('order-1')).body.code).toBe('outcome_unknown')
    const { body } = await admin('/unknown').get()
    const [found] = body
    expect(body).toEqual([expect.objectContaining({ scope: 'acme', key: 'order-1', state: 'failed', attempt: 1 })])

    const outcome = { completed: { status: 201, body: { id: 'po_1' } } }
    expect((await admin('/resolve').post({ ...found, outcome })).body).toEqual({ settled: true })
    const retry = await pay('order-1')
    expect([retry.status, retry.body, retry.headers['idempotent-replayed']]).toEqual([201, { id: 'po_1' }, 'true'])
    expect((await admin('/unknown').get()).body).toEqual([])
  })

  test('tells the second operator what the first one said', async () => {
    const { pay, admin } = service()
    await pay('order-1')
    const [found] = (await admin('/unknown').get()).body
    await admin('/resolve').post({ ...found, outcome: 'failed' })
    const second = await admin('/resolve').post({ ...found, outcome: 'completed' })
    expect([second.status, second.body]).toEqual([409, { nowIs: 'failed' }])
  })

  test.each(['', 'wrong'])('is shown to nobody else (%s)', async (token) => {
    const { pay, admin } = service()
    await pay('order-1')
    expect((await admin('/unknown', token).get()).status).toBe(401)
    expect((await admin('/resolve', token).post({})).status).toBe(401)
  })
})
