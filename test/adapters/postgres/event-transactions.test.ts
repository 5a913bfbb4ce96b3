import { createServer, type Server } from 'node:http'
import type { AddressInfo } from 'node:net'
import { type WebhookContext, type WebhookReceiverOptions, webhookReceiver } from 'once-per-key/webhooks'
import { afterEach, beforeEach, expect, test, vi } from 'vitest'
import { merchantUpdated } from '../../support/deliveries.js'
import { gate } from '../../support/gate.js'
import { openPool, openStore, storeOn } from './open-store.js'

vi.setConfig({ testTimeout: 60_000, hookTimeout: 60_000 })

const { pool, query, url } = await openStore()
const store = storeOn({ pool, transactions: openPool(url) })
await query('CREATE TABLE effects (id text)')

let server: Server | undefined
let idle: () => Promise<void>
beforeEach(() => query('TRUNCATE once_per_key.records, effects'))
afterEach(async () => {
  server?.close()
  await idle()
})

async function receive(
  handler: (context: WebhookContext) => Promise<unknown>,
  over: Pick<WebhookReceiverOptions, 'effects' | 'onEvent'> = { onEvent: () => {} },
): Promise<void> {
  const on = { merchant_updated: (_event: unknown, context: WebhookContext) => handler(context) }
  const receiver = webhookReceiver({ store, source: 'payments', verify: false, on, ...over })
  idle = () => receiver.idle()
  server = createServer((req, res) => receiver(req, res))
  await new Promise<void>((resolve) => server?.listen(0, '127.0.0.1', resolve))
}

async function deliver(): Promise<number> {
  const { port } = (server as Server).address() as AddressInfo
  const response = await fetch(`http://127.0.0.1:${port}/api/service/webhook-event/merchant_updated`, {
    method: 'POST',
    headers: { 'Content-Type': 'application/json' },
    body: JSON.stringify(merchantUpdated()),
  })
  return response.status
}

const effects = async () => (await query('SELECT id FROM effects')).length

test('the effects of an event commit with its record: that the work resolves is the answer', async () => {
  await receive((context) => store.transaction(context, (tx) => tx.query("INSERT INTO effects VALUES ('e')")))
  expect([await deliver(), await deliver()]).toEqual([200, 200])
  expect(await effects()).toBe(1)
})

test('an event whose work throws is redelivered, and leaves nothing behind', async () => {
  let runs = 0
  await receive((context) =>
    store.transaction(context, async (tx) => {
      await tx.query("INSERT INTO effects VALUES ('e')")
      if (++runs === 1) throw new Error('no')
    }),
  )
  expect(await deliver()).toBe(500)
  expect(await effects()).toBe(0)
  expect(await deliver()).toBe(200)
  expect(await effects()).toBe(1)
})

test('what a handler throws behind its COMMIT changes nothing', async () => {
  await receive(async (context) => {
    await store.transaction(context, (tx) => tx.query("INSERT INTO effects VALUES ('e')"))
    throw new Error('late')
  })
  expect([await deliver(), await deliver()]).toEqual([200, 200])
  expect(await effects()).toBe(1)
})

test('a redelivery goes on after the steps that an attempt has done', async () => {
  const charge = vi.fn(() => ({ id: 'ch_1' }))
  const seen: unknown[] = []
  await receive(async ({ step, attempt, deriveKey }) => {
    seen.push(await step('charge', charge))
    await step('ship', ({ key, previousOutcome }) => {
      seen.push(key === deriveKey('ship'), previousOutcome)
      if (attempt === 1) throw new Error('the carrier did not answer')
    })
  })
  expect([await deliver(), await deliver(), await deliver()]).toEqual([500, 200, 200])
  expect(charge).toHaveBeenCalledOnce()
  expect(seen).toEqual([{ id: 'ch_1' }, true, 'none', { id: 'ch_1' }, true, 'unknown'])
  expect(await query('SELECT steps FROM once_per_key.records')).toEqual([{ steps: null }])
})

test('a step of an event commits, and the event goes on', async () => {
  await receive(async (context) => {
    await store.step(context, 'reserve', async (tx) => void (await tx.query("INSERT INTO effects VALUES ('reserved')")))
    await store.transaction(context, (tx) => tx.query("INSERT INTO effects VALUES ('e')"))
  })
  expect(await deliver()).toBe(200)
  expect(await effects()).toBe(2)
})

test('without a claim, a duplicate that its transaction refuses is no failed handler', async () => {
  const [entered, goOn] = [gate(), gate()]
  const told: string[] = []
  const work = (context: WebhookContext) =>
    store.transaction(context, async (tx) => {
      await tx.query("INSERT INTO effects VALUES ('e')")
      entered.open()
      await goOn.opened
    })
  await receive(work, { effects: 'in-transaction', onEvent: ({ type }) => void told.push(type) })
  const first = deliver()
  await entered.opened
  expect(await deliver()).toBe(409)
  goOn.open()
  expect([await first, await deliver(), await effects()]).toEqual([200, 200, 1])
  expect(told).toEqual(['claimed', 'in_flight', 'completed', 'replayed'])
})
