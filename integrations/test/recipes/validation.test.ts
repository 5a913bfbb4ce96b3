import { IsInt, IsPositive, validateOrReject } from 'class-validator'
import express, { type RequestHandler } from 'express'
import { idempotency, singleTenant } from 'once-per-key'
import { MemoryStore } from 'once-per-key/memory'
import { describe, expect, test } from 'vitest'
import { z } from 'zod'
import { served } from '../../../test/recipes/served.js'
import { validatingApp } from '../../recipes/validation/app.js'

const schema = z.object({ amount: z.int().positive() })

class Payout {
  amount = 0
}
IsInt()(Payout.prototype, 'amount')
IsPositive()(Payout.prototype, 'amount')

const validators = [
  { name: 'zod', validate: async (body: object) => void schema.parse(body) },
  { name: 'class-validator', validate: (body: object) => validateOrReject(Object.assign(new Payout(), body)) },
]

describe.each(validators)('a body that $name refuses', ({ validate }) => {
  const createPayout: RequestHandler = async (req, res) => {
    await validate(req.body)
    res.status(201).json({ amount: req.body.amount })
  }

  test('is answered with 400 and its mistakes, and the corrected one runs under the same key', async () => {
    const { post } = await served(validatingApp({ store: new MemoryStore(), createPayout }))
    const refused = await post({ body: { amount: -1 } })
    expect([refused.status, JSON.parse(refused.text)]).toEqual([400, { errors: { amount: [expect.any(String)] } }])
    expect(await post({ body: { amount: 100 } })).toMatchObject({ status: 201, replayed: false })
  })

  test('is a 500 without the recipe, and the corrected one is another request under a used key', async () => {
    const app = express()
    const once = idempotency({ store: new MemoryStore(), scope: singleTenant })
    app.post('/payouts', express.json(), once, createPayout)
    app.set('env', 'test') // Express prints errors elsewhere.
    const { post } = await served(app)
    expect(await post({ body: { amount: -1 } })).toMatchObject({ status: 500 })
    expect(await post({ body: { amount: 100 } })).toMatchObject({ status: 409 })
  })
})

test('another error is left to the next error handler', async () => {
  const createPayout: RequestHandler = () => {
    throw Object.assign(new Error('Gone'), { status: 410 })
  }
  const app = validatingApp({ store: new MemoryStore(), createPayout })
  const { post } = await served(app.set('env', 'test'))
  expect(await post()).toMatchObject({ status: 410 })
})
