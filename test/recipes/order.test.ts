import type { RequestHandler } from 'express'
import { MemoryStore } from 'once-per-key/memory'
import { describe, expect, test } from 'vitest'
import { orderedApp } from '../../examples/recipes/order.js'
import { counted, served } from './served.js'

describe('the order of middleware', () => {
  async function start(createPayout: RequestHandler = (_req, res) => void res.status(201).json({})) {
    const mayPayOut: RequestHandler = (req, res, next) => {
      if (req.get('X-Role') === 'reader') res.sendStatus(403)
      else next()
    }
    return served(orderedApp({ store: new MemoryStore(), mayPayOut, createPayout }))
  }

  test('gives a replay to those who may make payouts, and to nobody else', async () => {
    const payout = counted()
    const { post } = await start(payout.handler)
    expect(await post()).toMatchObject({ status: 201, replayed: false })
    expect(await post({ headers: { Authorization: 'Bearer unknown' } })).toMatchObject({ status: 401 })
    expect(await post({ headers: { 'X-Role': 'reader' } })).toMatchObject({ status: 403, text: 'Forbidden' })
    expect(await post({ headers: { Authorization: 'Bearer demo_globex' } })).toMatchObject({ text: '{"run":2}' })
    expect(await post()).toMatchObject({ status: 201, replayed: true, text: '{"run":1}' })
    expect(payout.runs()).toBe(2)
  })

  test('gives each response a request id and security headers of its own', async () => {
    const { post } = await start()
    const [first, replay] = [await post(), await post()]
    expect(replay.replayed).toBe(true)
    expect(replay.header('X-Request-Id')).toMatch(/^[0-9a-f-]{36}$/)
    expect(replay.header('X-Request-Id')).not.toBe(first.header('X-Request-Id'))
    expect(replay.header('X-Content-Type-Options')).toBe('nosniff')
  })

  test('encodes an answer for the client that it is sent to', async () => {
    const { post } = await start()
    const first = await post({ headers: { 'Accept-Encoding': 'gzip' } })
    const replay = await post({ headers: { 'Accept-Encoding': 'identity' } })
    expect(first.header('Content-Encoding')).toBe('gzip')
    expect(replay.header('Content-Encoding')).toBeNull()
    expect(replay).toMatchObject({ replayed: true, text: first.text })
  })

  test('claims no key for a body that is no JSON', async () => {
    const { post } = await start()
    expect(await post({ body: '{' })).toMatchObject({ status: 400 })
    expect(await post()).toMatchObject({ status: 201, replayed: false })
  })

  test('frees the key where the error handler answers with a refusal', async () => {
    let isBroken = true
    const { post } = await start((_req, res) => {
      if (isBroken) throw Object.assign(new Error('Too much'), { status: 422, expose: true })
      res.status(201).json({})
    })
    expect(await post()).toMatchObject({ status: 422, text: '{"error":"Too much"}' })
    isBroken = false
    expect(await post({ body: { amount: 200 } })).toMatchObject({ status: 201, replayed: false })
  })

  test('keeps the key for its request where the error handler answers with 500, and tells the retry', async () => {
    const told: (string | undefined)[] = []
    const { post } = await start((req, res) => {
      told.push(req.idempotency?.previousOutcome)
      if (told.length === 1) throw new Error('secret')
      res.status(201).json({})
    })
    expect(await post()).toMatchObject({ status: 500, text: '{"error":"Something went wrong."}' })
    expect(await post({ body: { amount: 200 } })).toMatchObject({ status: 409 })
    expect(await post()).toMatchObject({ status: 201, replayed: false })
    expect(told).toEqual(['none', 'unknown'])
  })
})
