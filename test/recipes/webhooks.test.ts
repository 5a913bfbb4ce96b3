import { createHmac, generateKeyPairSync, sign } from 'node:crypto'
import type { RequestListener } from 'node:http'
import express from 'express'
import fastify from 'fastify'
import Koa from 'koa'
import bodyParser from 'koa-bodyparser'
import { MemoryStore } from 'once-per-key/memory'
import { type WebhookReceiver, webhookReceiver } from 'once-per-key/receiver'
import { describe, expect, test } from 'vitest'
import { onFastify, onKoa } from '../../examples/recipes/webhooks/fastify-koa.js'
import { githubReceiver } from '../../examples/recipes/webhooks/github.js'
import { shopifyReceiver } from '../../examples/recipes/webhooks/shopify.js'
import { type StandardParts, standardReceiver } from '../../examples/recipes/webhooks/standard.js'
import { served } from './served.js'

const paidAt = (timestamp: number) =>
  JSON.stringify({ type: 'invoice.paid', timestamp: new Date(timestamp).toISOString(), data: { id: 'in_1' } })

const secret = Buffer.alloc(24, 7)
const { publicKey, privateKey } = generateKeyPairSync('ed25519')
const rawPublicKey = publicKey.export({ format: 'der', type: 'spki' }).subarray(-32)

const SCHEMES: readonly { readonly name: string; keys: StandardParts['keys']; sign(signed: string): string }[] = [
  {
    name: 'v1',
    keys: { secrets: [`whsec_${secret.toString('base64')}`] },
    sign: (signed) => `v1,${createHmac('sha256', secret).update(signed).digest('base64')}`,
  },
  {
    name: 'v1a',
    keys: { publicKeys: [`whpk_${rawPublicKey.toString('base64')}`] },
    sign: (signed) => `v1a,${sign(null, Buffer.from(signed), privateKey).toString('base64')}`,
  },
]

test.each(SCHEMES)(
  'an event in the standard form, signed as $name, is handled once on Express and by Fetch',
  async ({ keys, sign }) => {
    const booked: string[] = []
    const receiver = standardReceiver({ store: new MemoryStore(), keys, book: async ({ id }) => void booked.push(id) })
    const { post } = await served(express().post('/webhooks/billing', receiver))
    const headersOf = (body: string, id: string) => {
      const timestamp = String(Math.floor(Date.now() / 1_000))
      return {
        'webhook-id': id,
        'webhook-timestamp': timestamp,
        'webhook-signature': sign(`${id}.${timestamp}.${body}`),
      }
    }
    const overHttp = (body: string, id: string) =>
      post({ path: '/webhooks/billing', key: null, body, headers: headersOf(body, id) })
    const byFetch = (body: string, id: string) =>
      receiver.fetch(
        new Request('http://test/webhooks/billing', { method: 'POST', body, headers: headersOf(body, id) }),
      )

    const body = paidAt(Date.now())
    expect(await overHttp(body, 'msg_1')).toMatchObject({ status: 200, replayed: false })
    const repeat = await byFetch(body, 'msg_1')
    expect([repeat.status, repeat.headers.get('idempotent-replayed')]).toEqual([200, 'true'])
    expect((await byFetch(body, 'msg_2')).status).toBe(200)
    expect((await post({ path: '/webhooks/billing', key: null, body })).status).toBe(401)

    const old = paidAt(Date.now() - 32 * 86_400_000)
    expect((await byFetch(old, 'msg_3')).status).toBe(409)
    expect(booked).toEqual(['in_1', 'in_1'])
  },
)

test('GitHub’s and Shopify’s are verified by name', async () => {
  const seen: unknown[] = []
  const parts = { store: new MemoryStore(), secret: 'shared' }
  const app = express()
    .post('/github', githubReceiver({ ...parts, deploy: async (commit) => void seen.push(commit) }))
    .post('/shopify', shopifyReceiver({ ...parts, fulfil: async (shop, order) => void seen.push([shop, order]) }))
  const { post } = await served(app)
  const body = JSON.stringify({ after: 'c0ffee', id: 7 })
  const hmac = (encoding: 'hex' | 'base64') => createHmac('sha256', 'shared').update(body).digest(encoding)
  const github = { 'X-GitHub-Delivery': 'd1', 'X-GitHub-Event': 'push', 'X-Hub-Signature-256': `sha256=${hmac('hex')}` }
  const shopify = {
    'X-Shopify-Webhook-Id': 'w1',
    'X-Shopify-Topic': 'orders/create',
    'X-Shopify-Shop-Domain': 'acme.example',
    'X-Shopify-Hmac-Sha256': hmac('base64'),
  }
  for (const [path, headers] of [
    ['/github', github],
    ['/shopify', shopify],
  ] as const) {
    expect((await post({ path, key: null, body, headers })).status).toBe(200)
    expect(await post({ path, key: null, body, headers })).toMatchObject({ status: 200, replayed: true })
    expect((await post({ path, key: null, body: `${body} `, headers })).status).toBe(401)
  }
  expect(seen).toEqual(['c0ffee', ['acme.example', 7]])
})

test('Shopify’s are taken by Fetch too', async () => {
  const seen: unknown[] = []
  const fulfil = async (shop: string, order: number) => void seen.push([shop, order])
  const receiver = shopifyReceiver({ store: new MemoryStore(), secret: 'shared', fulfil })
  const body = JSON.stringify({ id: 7 })
  const headers = {
    'X-Shopify-Webhook-Id': 'w1',
    'X-Shopify-Topic': 'orders/create',
    'X-Shopify-Shop-Domain': 'acme.example',
    'X-Shopify-Hmac-Sha256': createHmac('sha256', 'shared').update(body).digest('base64'),
  }
  const response = await receiver.fetch(new Request('http://test/shopify', { method: 'POST', body, headers }))
  expect([response.status, seen]).toEqual([200, [['acme.example', 7]]])
})

describe('on a framework that responds by itself', () => {
  /** Its first run fails: the sender must hear of it. */
  function receiverOf(runs: string[]) {
    return webhookReceiver({
      store: new MemoryStore(),
      source: 'shop',
      verify: (raw, { 'x-signature': signature }) => signature === signatureOf(raw),
      parse: (raw) => ({ id: 'evt_1', type: 'paid', payload: raw.length }),
      on: {
        async paid() {
          await new Promise(setImmediate)
          runs.push('ran')
          if (runs.length === 1) throw new Error('The database is away')
        },
      },
      onEvent: () => {},
    })
  }
  const signatureOf = (raw: Buffer | string) => createHmac('sha256', 'shared').update(raw).digest('hex')

  interface Framework {
    readonly name: string
    listener(receiver: WebhookReceiver): RequestListener | Promise<RequestListener>
  }
  const FRAMEWORKS: readonly Framework[] = [
    {
      name: 'Fastify',
      async listener(receiver) {
        const app = fastify()
        app.register(onFastify('/hook', receiver))
        app.post('/other', async (request, reply) => reply.code(201).send(request.body))
        await app.ready()
        return app.routing
      },
    },
    {
      name: 'Koa',
      listener(receiver) {
        const receive = onKoa(receiver)
        const app = new Koa()
        app.use((ctx, next) => (ctx.path === '/hook' ? receive(ctx as never, next) : next()))
        app.use(bodyParser())
        app.use((ctx) => {
          ctx.status = 201
          ctx.body = ctx.request.body
        })
        return app.callback()
      },
    },
  ]

  test.each(FRAMEWORKS)('the sender gets the receiver’s response: $name', async ({ listener }) => {
    const runs: string[] = []
    const { post } = await served(await listener(receiverOf(runs)))
    const deliver = async () => {
      const body = '{"amount": 1}'
      const { status } = await post({ path: '/hook', key: null, body, headers: { 'X-Signature': signatureOf(body) } })
      return status
    }
    expect([await deliver(), await deliver(), await deliver(), runs.length]).toEqual([500, 200, 200, 2])
    expect(await post({ path: '/other', key: null, body: '{"a":1}' })).toMatchObject({ status: 201, text: '{"a":1}' })
  })
})
