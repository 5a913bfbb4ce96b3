import { createHmac, randomUUID } from 'node:crypto'
import { sign, verify } from '@octokit/webhooks-methods'
import { ApiVersion, shopifyApi } from '@shopify/shopify-api'
import '@shopify/shopify-api/adapters/node'
import express from 'express'
import { MemoryStore } from 'once-per-key/memory'
import { hmacSha256, type WebhookReceiver } from 'once-per-key/webhooks'
import { Webhook } from 'standardwebhooks'
import { Stripe } from 'stripe'
import { describe, expect, test } from 'vitest'
import { githubReceiver } from '../../../examples/recipes/webhooks/github.js'
import { paymentsReceiver } from '../../../examples/recipes/webhooks/payments.js'
import { shopifyReceiver } from '../../../examples/recipes/webhooks/shopify.js'
import { served } from '../../../test/recipes/served.js'
import { merchantUpdated } from '../../../test/support/deliveries.js'
import { stripeReceiver } from '../../recipes/webhooks/stripe.js'

/** A client that delivers to a receiver, mounted in front of the application's body parser. */
async function sender(receiver: WebhookReceiver) {
  const app = express()
  app.post('/hook', receiver).use(express.json())
  const { post } = await served(app)
  return (body: string, headers: Record<string, string>) => post({ path: '/hook', key: null, body, headers })
}

describe('Stripe', () => {
  const secret = 'whsec_of_the_endpoint'
  const stripe = new Stripe('sk_test_of_nobody')
  const created = Math.floor(Date.now() / 1_000)
  const paid = (over: object = {}) =>
    JSON.stringify({
      id: 'evt_1',
      object: 'event',
      type: 'invoice.paid',
      pending_webhooks: 1,
      created,
      data: { object: { id: 'in_1', amount_paid: 100 } },
      ...over,
    })
  const signed = (payload: string, timestamp = Math.floor(Date.now() / 1_000)) => ({
    'Stripe-Signature': stripe.webhooks.generateTestHeaderString({ payload, secret, timestamp }),
  })

  async function start() {
    const booked: string[] = []
    const book = async ({ id }: Stripe.Invoice) => void booked.push(id as string)
    return { booked, deliver: await sender(stripeReceiver({ store: new MemoryStore(), secret, book })) }
  }

  test('an event that is signed as constructEvent wants it is handled once, with other counters too', async () => {
    const { booked, deliver } = await start()
    expect((await deliver(paid(), signed(paid()))).status).toBe(200)
    const again = paid({ pending_webhooks: 0 })
    expect(await deliver(again, signed(again))).toMatchObject({ status: 200, replayed: true })
    expect(booked).toEqual(['in_1'])
  })

  test('one that constructEvent refuses is refused', async () => {
    const { booked, deliver } = await start()
    for (const headers of [
      {},
      signed(paid({ id: 'evt_2' })),
      signed(paid(), 1_500_000_000),
      { 'Stripe-Signature': 't=1' },
    ]) {
      const header = (headers as { 'Stripe-Signature'?: string })['Stripe-Signature'] ?? ''
      expect(() => stripe.webhooks.constructEvent(paid(), header, secret)).toThrow()
      expect((await deliver(paid(), headers)).status).toBe(401)
    }
    expect(booked).toEqual([])
  })

  test('one of a type that nobody handles is acknowledged', async () => {
    const { booked, deliver } = await start()
    const created = paid({ type: 'customer.created' })
    expect((await deliver(created, signed(created))).status).toBe(200)
    expect(booked).toEqual([])
  })
})

describe('GitHub', () => {
  test('the signature that its documentation publishes is taken', () => {
    // https://docs.github.com/webhooks/using-webhooks/validating-webhook-deliveries#testing-the-webhook-payload-validation
    const secret = "It's a Secret to Everybody"
    const published = 'sha256=757107ea0eb2509fc211221cce984b8a37570b6d7586c22c46f4379c8b043e17'
    const isFromGithub = hmacSha256({ header: 'X-Hub-Signature-256', prefix: 'sha256=', secrets: [secret] })
    expect(isFromGithub(Buffer.from('Hello, World!'), { 'x-hub-signature-256': published })).toBe(true)
    expect(isFromGithub(Buffer.from('Hello, world!'), { 'x-hub-signature-256': published })).toBe(false)
  })

  test('a push is deployed once, however often it is delivered, and a ping is acknowledged', async () => {
    const secret = randomUUID()
    const deployed: string[] = []
    const deploy = async (commit: string) => void deployed.push(commit)
    const deliver = await sender(githubReceiver({ store: new MemoryStore(), secret, deploy }))
    const body = JSON.stringify({ ref: 'refs/heads/main', after: 'c0ffee' })
    const headersOf = (signature: string, event = 'push', id = '72d3162e-cc78-11e3-81ab-4c9367dc0958') => ({
      'X-Hub-Signature-256': signature,
      'X-GitHub-Event': event,
      ...(id && { 'X-GitHub-Delivery': id }),
    })
    const signature = await sign(secret, body)
    expect(await verify(secret, body, signature)).toBe(true)
    for (let i = 0; i < 2; i++) expect((await deliver(body, headersOf(signature))).status).toBe(200)
    expect((await deliver(body, headersOf(signature, 'ping', randomUUID()))).status).toBe(200)
    expect((await deliver(body, headersOf(signature, 'push', ''))).status).toBe(400)
    expect((await deliver(body, headersOf(await sign('another secret', body)))).status).toBe(401)
    expect(deployed).toEqual(['c0ffee'])
  })
})

describe('Shopify', () => {
  const secret = randomUUID()
  const shopify = shopifyApi({
    apiKey: 'key',
    apiSecretKey: secret,
    scopes: [],
    hostName: 'app.example',
    apiVersion: ApiVersion.October25,
    isEmbeddedApp: false,
    logger: { level: 0 },
  })

  const headersOf = (body: string, over: Record<string, string> = {}): Record<string, string> => ({
    'X-Shopify-Hmac-Sha256': createHmac('sha256', secret).update(body).digest('base64'),
    'X-Shopify-Topic': 'orders/create',
    'X-Shopify-Shop-Domain': 'acme.myshopify.com',
    'X-Shopify-Api-Version': '2025-10',
    'X-Shopify-Webhook-Id': 'b54557e4-bdd9-4b37-8a5f-bf7d70bcd043',
    ...over,
  })

  /** What Shopify's own package says of a delivery. */
  async function isValid(body: string, headers: Record<string, string>): Promise<boolean> {
    const rawRequest = { headers, url: '/hook', method: 'POST' } as never
    const { valid } = await shopify.webhooks.validate({ rawBody: body, rawRequest, rawResponse: {} as never })
    return valid
  }

  test('an order is fulfilled once for each shop, and what Shopify’s package refuses is refused', async () => {
    const fulfilled: string[] = []
    const fulfil = async (shop: string, order: number) => void fulfilled.push(`${shop} ${order}`)
    const deliver = await sender(shopifyReceiver({ store: new MemoryStore(), secret, fulfil }))
    const body = JSON.stringify({ id: 549_755_813, name: '#1001' })
    const globex = headersOf(body, { 'X-Shopify-Shop-Domain': 'globex.myshopify.com' })
    for (const headers of [headersOf(body), headersOf(body), globex]) {
      expect(await isValid(body, headers)).toBe(true)
      expect((await deliver(body, headers)).status).toBe(200)
    }
    for (const headers of [headersOf('{}'), headersOf(body, { 'X-Shopify-Hmac-Sha256': 'AAAA' })]) {
      expect(await isValid(body, headers)).toBe(false)
      expect((await deliver(body, headers)).status).toBe(401)
    }
    expect(fulfilled).toEqual(['acme.myshopify.com 549755813', 'globex.myshopify.com 549755813'])
  })

  test('a delivery without an id is refused: it could be any', async () => {
    const fulfilled: unknown[] = []
    const fulfil = async (shop: string) => void fulfilled.push(shop)
    const deliver = await sender(shopifyReceiver({ store: new MemoryStore(), secret, fulfil }))
    const { 'X-Shopify-Webhook-Id': _, ...headers } = headersOf('{"id":1}')
    expect((await deliver('{"id":1}', headers)).status).toBe(400)
    expect(fulfilled).toEqual([])
  })
})

describe('the payments service', () => {
  const secret = `whsec_${Buffer.alloc(32, 7).toString('base64')}`
  const event = merchantUpdated() as { readonly id: string }
  const body = JSON.stringify(event)
  const signed = (text: string) => ({
    'webhook-id': event.id,
    'webhook-timestamp': String(Math.floor(Date.now() / 1_000)),
    'webhook-signature': new Webhook(secret).sign(event.id, new Date(), text),
  })

  async function start() {
    const renamed: unknown[] = []
    const rename = async (id: unknown) => void renamed.push(id)
    const app = express()
    app.use(paymentsReceiver({ store: new MemoryStore(), secret, rename })).use(express.json())
    const { post } = await served(app)
    const path = '/api/service/webhook-event/merchant_updated'
    return { renamed, deliver: (headers: Record<string, string>) => post({ path, key: null, body, headers }) }
  }

  test('an event that is signed as Standard Webhooks says is handled once', async () => {
    const { renamed, deliver } = await start()
    expect((await deliver(signed(body))).status).toBe(200)
    expect(await deliver(signed(body))).toMatchObject({ status: 200, replayed: true })
    expect(renamed).toHaveLength(1)
  })

  test('one that is not is refused', async () => {
    const { renamed, deliver } = await start()
    expect((await deliver(signed('{}'))).status).toBe(401)
    expect(renamed).toEqual([])
  })
})
