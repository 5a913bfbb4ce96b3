import type { RequestHandler } from 'express'
import { MemoryStore } from 'once-per-key/memory'
import { describe, expect, test } from 'vitest'
import { movedApp } from '../../examples/recipes/from-express-idempotency.js'
import { gate } from '../support/gate.js'
import { counted, served } from './served.js'

const start = (createPayout: RequestHandler) => served(movedApp({ store: new MemoryStore(), createPayout }))

describe('an application that comes from express-idempotency', () => {
  test('needs no look at a replay in its handler, which does not run', async () => {
    const payout = counted()
    const { post } = await start(payout.handler)
    const first = await post()
    expect(await post()).toMatchObject({ status: 201, replayed: true, text: first.text })
    expect(payout.runs()).toBe(1)
  })

  test('reports no failure: a handler that throws has freed the key', async () => {
    let isBroken = true
    const { post } = await start((_req, res) => {
      if (isBroken) throw new Error('It broke')
      res.status(201).json({})
    })
    expect(await post()).toMatchObject({ status: 500 })
    isBroken = false
    expect(await post()).toMatchObject({ status: 201, replayed: false })
  })

  test('keeps 2xx alone, and compares query and body, as before', async () => {
    let runs = 0
    const { post } = await start((req, res) => {
      runs++
      res.status(req.body.amount > 100 ? 302 : 201).json({})
    })
    await post({ key: 'redirect', body: { amount: 200 } })
    expect(await post({ key: 'redirect', body: { amount: 200 } })).toMatchObject({ replayed: false })
    expect(runs).toBe(2)
    await post()
    expect(await post({ path: '/payouts?draft=1' })).toMatchObject({ status: 417 })
  })

  test('answers its clients with the status for misuse that they know', async () => {
    const { post } = await start(counted().handler)
    await post()
    const misuse = await post({ body: { amount: 200 } })
    expect([misuse.status, JSON.parse(misuse.text).code, misuse.header('X-Should-Retry')]).toEqual([
      417,
      'mismatched',
      'false',
    ])
  })

  test('answers 409 with Retry-After while the first request runs', async () => {
    const { opened, open } = gate()
    const payout = counted(() => opened)
    const { post } = await start(payout.handler)
    const first = post()
    await expect.poll(payout.runs).toBe(1)
    expect((await post()).header('Retry-After')).toBe('1')
    open()
    await first
  })

  test('keeps the key of one merchant from another', async () => {
    const payout = counted()
    const { post } = await start(payout.handler)
    await post()
    await post({ headers: { Authorization: 'Bearer demo_globex' } })
    expect(payout.runs()).toBe(2)
  })

  test('gives back all headers of the handler, and does not repeat the key', async () => {
    const { post } = await start((_req, res) => void res.status(201).location('/payouts/1').json({}))
    await post()
    const replay = await post()
    expect([replay.replayed, replay.header('Location')]).toEqual([true, '/payouts/1'])
    expect(replay.header('Idempotency-Key')).toBeNull()
  })
})
