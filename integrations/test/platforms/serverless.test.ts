import express from 'express'
import express4 from 'express4'
import Koa from 'koa'
import bodyParser from 'koa-bodyparser'
import { idempotency, singleTenant } from 'once-per-key'
import { idempotency as forKoa } from 'once-per-key/koa'
import { MemoryStore } from 'once-per-key/memory'
import serverless from 'serverless-http'
import { describe, expect, test } from 'vitest'

// Applications as functions: their requests have headers, and no lines that were received.

let paid = 0

function onExpress(create: typeof express) {
  const app = create()
  app.use(express.json())
  app.post('/payouts', idempotency({ store: new MemoryStore(), scope: singleTenant }), (req, res) => {
    res.status(201).json({ number: ++paid, amount: req.body.amount, key: req.idempotency?.key })
  })
  return app
}

function onKoa() {
  const app = new Koa()
  app.use(bodyParser())
  app.use(forKoa({ store: new MemoryStore(), scope: singleTenant }))
  app.use((ctx) => {
    ctx.status = 201
    ctx.body = { number: ++paid, amount: (ctx.request.body as { amount: number }).amount, key: ctx.idempotency?.key }
  })
  return app
}

interface Result {
  readonly statusCode: number
  readonly headers: Record<string, string>
  readonly body: string
}

describe.each([
  { name: 'Express 5', app: () => onExpress(express) },
  { name: 'Express 4', app: () => onExpress(express4 as unknown as typeof express) },
  { name: 'Koa', app: onKoa },
])('$name in serverless-http', ({ app }) => {
  async function invoker() {
    const handler = serverless(app() as never)
    return async (headers: Record<string, string>, body: unknown = { amount: 5 }) => {
      const event = {
        httpMethod: 'POST',
        path: '/payouts',
        headers: { 'content-type': 'application/json', ...headers },
        body: JSON.stringify(body),
        requestContext: {},
      }
      const { statusCode, headers: sent, body: text } = (await handler(event, {})) as Result
      return [statusCode, JSON.parse(text), sent['idempotent-replayed'] === 'true']
    }
  }

  test('a retry gets the answer of the first request', async () => {
    const pay = await invoker()
    const number = paid + 1
    const answer = { number, amount: 5, key: 'order-1' }
    expect(await pay({ 'Idempotency-Key': 'order-1' })).toEqual([201, answer, false])
    expect(await pay({ 'idempotency-key': 'order-1' })).toEqual([201, answer, true])
    expect(await pay({ 'Idempotency-Key': 'order-1' }, { amount: 6 })).toMatchObject([
      409,
      { code: 'mismatched' },
      false,
    ])
    expect(paid).toBe(number)
  })

  test('a request without a key passes untouched', async () => {
    const pay = await invoker()
    const number = paid + 1
    expect(await pay({})).toEqual([201, { number, amount: 5 }, false])
    expect(await pay({})).toEqual([201, { number: number + 1, amount: 5 }, false])
  })
})
