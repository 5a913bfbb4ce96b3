import type { RequestHandler } from 'express'
import { MemoryStore } from 'once-per-key/memory'
import { describe, expect, test } from 'vitest'
import { movedApp } from '../../examples/recipes/from-idempot-js.js'
import { counted, served } from './served.js'

const start = (createPayout: RequestHandler) => served(movedApp({ store: new MemoryStore(), createPayout }))

describe('an application that comes from idempot-js', () => {
  test('gives a retry the first answer', async () => {
    const payout = counted()
    const { post } = await start(payout.handler)
    const first = await post()
    expect(await post()).toMatchObject({ status: 201, replayed: true, text: first.text })
    expect(payout.runs()).toBe(1)
  })

  test('requires a key', async () => {
    const { post } = await start(counted().handler)
    expect(await post({ key: null })).toMatchObject({ status: 400 })
  })

  test('does not compare the field that it left out, and refuses another amount with 422', async () => {
    const { post } = await start(counted().handler)
    await post({ body: { amount: 100, sentAt: 1 } })
    expect(await post({ body: { amount: 100, sentAt: 2 } })).toMatchObject({ replayed: true })
    expect(await post({ body: { amount: 200, sentAt: 1 } })).toMatchObject({ status: 422 })
  })

  test('takes the same body under another key for another operation', async () => {
    const payout = counted()
    const { post } = await start(payout.handler)
    await post({ key: 'order-1' })
    expect(await post({ key: 'order-2' })).toMatchObject({ status: 201, replayed: false })
    expect(payout.runs()).toBe(2)
  })

  test('runs again after a failure, which is not replayed any more', async () => {
    let runs = 0
    const { post } = await start((_req, res) => void res.status(++runs === 1 ? 500 : 201).json({ runs }))
    expect(await post()).toMatchObject({ status: 500 })
    expect(await post()).toMatchObject({ status: 201, replayed: false })
  })
})
