import { createServer, type RequestListener } from 'node:http'
import type { AddressInfo } from 'node:net'
import { createServerAdapter } from '@whatwg-node/server'
import express from 'express'
import { createSchema, createYoga } from 'graphql-yoga'
import { idempotency, singleTenant } from 'once-per-key/fetch'
import { MemoryStore } from 'once-per-key/memory'
import { webhookReceiver } from 'once-per-key/receiver'
import { expect, onTestFinished, test } from 'vitest'

// On Node, the requests of @whatwg-node/server (fets, itty-router, GraphQL Yoga) are their own copies. The library read their body, and their
// handlers got an empty one.

async function serve(listener: RequestListener): Promise<(body: unknown, path?: string) => Promise<Response>> {
  const server = createServer(listener)
  onTestFinished(() => void server.close())
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  const { port } = server.address() as AddressInfo
  return (body, path = '/payouts') =>
    fetch(`http://127.0.0.1:${port}${path}`, {
      method: 'POST',
      headers: { 'Content-Type': 'application/json', 'Idempotency-Key': 'order-1', Connection: 'close' },
      body: JSON.stringify(body),
    })
}

async function seen(response: Response) {
  return [response.status, await response.json(), response.headers.get('Idempotent-Replayed')]
}

test('a handler gets the body, and a retry its answer', async () => {
  const once = idempotency({ store: new MemoryStore(), scope: singleTenant })
  const post = await serve(
    createServerAdapter(
      once(async (request) => Response.json({ paid: (await request.json()).amount }, { status: 201 })),
    ),
  )
  expect(await seen(await post({ amount: 5 }))).toEqual([201, { paid: 5 }, null])
  expect(await seen(await post({ amount: 5 }))).toEqual([201, { paid: 5 }, 'true'])
  expect(await seen(await post({ amount: 6 }))).toMatchObject([409, { code: 'mismatched' }, null])
})

test('behind a parser of Express, which has read the body, a request is refused before its handler', async () => {
  const once = idempotency({ store: new MemoryStore(), scope: singleTenant })
  const refused: unknown[] = []
  const handle = once(() => expect.unreachable('The handler runs.'))
  const adapter = createServerAdapter((request: Request) =>
    handle(request).catch((error: { readonly code: string }) => {
      refused.push(error.code)
      return new Response('refused', { status: 500 })
    }),
  )
  const app = express().use(express.json()).use(adapter)
  const post = await serve(app)
  expect((await post({ amount: 5 })).status).toBe(500)
  expect(refused).toEqual(['raw_body_consumed'])
})

test('GraphQL Yoga runs a mutation once', async () => {
  const once = idempotency({ store: new MemoryStore(), scope: singleTenant })
  let payouts = 0
  const yoga = createYoga({
    logging: false,
    schema: createSchema({
      typeDefs: 'type Query { payouts: Int! } type Mutation { pay(amount: Int!): Int! }',
      resolvers: { Query: { payouts: () => payouts }, Mutation: { pay: () => ++payouts } },
    }),
  })
  const post = await serve(
    createServerAdapter((request: Request, context: object) =>
      once.handle(request, (same) => yoga.fetch(same, context)),
    ),
  )
  const pay = { query: 'mutation { pay(amount: 5) }' }
  expect(await seen(await post(pay, '/graphql'))).toEqual([200, { data: { pay: 1 } }, null])
  expect(await seen(await post(pay, '/graphql'))).toEqual([200, { data: { pay: 1 } }, 'true'])
  expect(payouts).toBe(1)
})

test('a webhook receiver gets the raw body', async () => {
  const delivered: unknown[] = []
  const receiver = webhookReceiver({
    store: new MemoryStore(),
    source: 'test',
    verify: false,
    parse: (raw) => JSON.parse(raw.toString()) as { id: string; type: string; payload: unknown },
    on: { paid: ({ id }: { id: string }) => void delivered.push(id) },
  })
  const post = await serve(createServerAdapter((request: Request) => receiver.fetch(request)))
  for (let i = 0; i < 2; i++) expect((await post({ id: 'evt_1', type: 'paid' })).status).toBe(200)
  expect(delivered).toEqual(['evt_1'])
})
