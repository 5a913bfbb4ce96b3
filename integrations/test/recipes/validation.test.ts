import { IsInt, IsPositive, validateOrReject } from 'class-validator'
import express, { type RequestHandler } from 'express'
import { idempotency, singleTenant } from 'once-per-key'
import { MemoryStore } from 'once-per-key/memory'
import { describe, expect, test } from 'vitest'
import { z } from 'zod'
import { served } from '../../../test/recipes/served.js'
import { validatingApp } from '../../recipes/validation/app.js'
import { validateBody } from '../../recipes/validation/validate-body.js'

const schema = z.object({ amount: z.int().positive() })

class Payout {
  amount = 0
}
IsInt()(Payout.prototype, 'amount')
IsPositive()(Payout.prototype, 'amount')

async function asPayout(body: unknown): Promise<Payout> {
  const payout = Object.assign(new Payout(), body)
  await validateOrReject(payout)
  return payout
}

const pays: RequestHandler = (_req, res) => void res.status(201).json({ amount: res.locals.body.amount })

function appWith(...handlers: RequestHandler[]) {
  const app = express()
  app.set('env', 'test') // Express prints errors elsewhere.
  app.post('/payouts', express.json(), ...handlers)
  return app
}

const once = () => idempotency({ store: new MemoryStore(), scope: singleTenant, onEvent() {} })

describe.each([
  { name: 'zod', validate: schema.parse },
  { name: 'class-validator', validate: asPayout },
])('a body that $name refuses', ({ validate }) => {
  test('is answered with 400 and its mistakes, and the corrected one runs under the same key', async () => {
    const { post } = await served(appWith(validateBody(validate), once(), pays))
    const refused = await post({ body: { amount: -1 } })
    expect([refused.status, JSON.parse(refused.text)]).toEqual([400, { errors: { amount: [expect.any(String)] } }])
    expect(await post({ body: { amount: 100 } })).toMatchObject({
      status: 201,
      text: '{"amount":100}',
      replayed: false,
    })
    expect(await post({ body: { amount: 100 } })).toMatchObject({ status: 201, replayed: true })
  })

  test('is a 500 where the handler validates, and the corrected one is another request under a used key', async () => {
    const { post } = await served(appWith(once(), async (req, res) => void res.json(await validate(req.body))))
    expect(await post({ body: { amount: -1 } })).toMatchObject({ status: 500 })
    expect(await post({ body: { amount: 100 } })).toMatchObject({ status: 409 })
  })
})

test('what the handler throws about the bank’s reply is no refusal of the request', async () => {
  const told: unknown[] = []
  const createPayout: RequestHandler = (req) => {
    told.push(req.idempotency?.previousOutcome)
    z.object({ id: z.string() }).parse({ error: 'the bank has another format today' })
  }
  const app = validatingApp({ store: new MemoryStore(), createPayout })
  const { post } = await served(app.set('env', 'test'))
  expect(await post()).toMatchObject({ status: 500 })
  expect(await post()).toMatchObject({ status: 500 })
  expect(told).toEqual(['none', 'unknown'])
  expect(await post({ body: { amount: -1 } })).toMatchObject({ status: 400 })
})

test('a validator that fails is an error of the application', async () => {
  const fails = () => {
    throw Object.assign(new Error('Gone'), { status: 410 })
  }
  const { post } = await served(appWith(validateBody(fails), once(), pays))
  expect(await post()).toMatchObject({ status: 410 })
})
