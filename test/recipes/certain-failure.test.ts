import express from 'express'
import { type IdempotencyContext, idempotency } from 'once-per-key'
import { MemoryStore } from 'once-per-key/memory'
import { expect, test } from 'vitest'
import { type Bank, Declined, pay } from '../../examples/recipes/certain-failure.js'
import { authenticate } from '../../examples/recipes/merchant.js'
import { served } from './served.js'

async function start(transfer: Bank['transfer']) {
  const contexts: IdempotencyContext[] = []
  const once = idempotency({ store: new MemoryStore(), scope: (req) => req.merchantId })
  const app = express()
  app.set('env', 'test') // Express prints no errors then.
  app.post(
    '/payouts',
    authenticate,
    express.json(),
    once,
    (req, _res, next) => {
      if (req.idempotency) contexts.push(req.idempotency)
      next()
    },
    pay({ transfer }),
  )
  return { ...(await served(app)), contexts }
}

test('a declined payment frees its key for a corrected request', async () => {
  const { post, contexts } = await start(async (amount) => {
    if (amount > 150) throw new Declined()
    return { id: 'tr_1' }
  })
  expect(await post({ body: { amount: 200 } })).toMatchObject({ status: 402 })
  expect(await post({ body: { amount: 100 } })).toMatchObject({ status: 201 })
  expect(contexts.map(({ previousOutcome }) => previousOutcome)).toEqual(['none', 'failed'])
})

test('after any other error the outcome is unknown', async () => {
  const { post, contexts } = await start(async () => {
    throw new Error('The bank did not respond')
  })
  expect(await post()).toMatchObject({ status: 500 })
  expect(await post()).toMatchObject({ status: 500 })
  expect(contexts.map(({ previousOutcome }) => previousOutcome)).toEqual(['none', 'unknown'])
})
