import { createServer, type IncomingMessage } from 'node:http'
import connect from 'connect'
import express from 'express'
import express4 from 'express4'
import { MemoryStore } from 'once-per-key/memory'
import {
  type MandateSetupStartedEvent,
  type MerchantUpdatedEvent,
  type UnknownEvent,
  type WebhookReceiverEvent,
  webhookReceiver,
} from 'once-per-key/webhooks'
import { expectTypeOf, test } from 'vitest'

interface Tenanted extends IncomingMessage {
  tenant: string
}

const store = new MemoryStore()
const rest = { store, source: 'payments', verify: false } as const

test('each handler gets the event of its type', () => {
  webhookReceiver({
    ...rest,
    on: {
      merchant_updated: (event, { attempt, signal }) => {
        expectTypeOf(event).toEqualTypeOf<MerchantUpdatedEvent>()
        expectTypeOf(attempt).toEqualTypeOf<number>()
        expectTypeOf(signal).toEqualTypeOf<AbortSignal>()
      },
      mandate_setup_started: async (event) => expectTypeOf(event).toEqualTypeOf<MandateSetupStartedEvent>(),
    },
    onUnknownEvent: (event) => expectTypeOf(event).toEqualTypeOf<UnknownEvent>(),
    onEvent: (event) => expectTypeOf(event).toEqualTypeOf<WebhookReceiverEvent>(),
  })
  // @ts-expect-error a typo in a field's name
  webhookReceiver({ ...rest, on: { merchant_updated: (event) => event.payload.displayname } })
  // @ts-expect-error a type that is not known
  const misspelt = () => webhookReceiver({ ...rest, on: { merchant_update: () => {} } })
  expectTypeOf(misspelt).toBeFunction()
  // @ts-expect-error verify is required
  const unsigned = () => webhookReceiver({ store, source: 'payments', on: {} })
  expectTypeOf(unsigned).toBeFunction()
})

test('the request may be one of the application’s', () => {
  webhookReceiver<Tenanted>({ ...rest, source: ({ tenant }) => tenant, on: {} })
})

test('a receiver fits where each framework takes middleware', () => {
  const receiver = webhookReceiver({ ...rest, on: {} })
  express().use(receiver).use('/hooks', receiver).post('/webhooks', receiver.handle)
  // biome-ignore lint/suspicious/noExplicitAny: the types of Express 4 stand under another name
  const app4: any = express4()
  app4.use(receiver)
  connect().use(receiver).use('/webhooks', receiver.handle)
  createServer((req, res) => receiver(req, res))
  createServer(receiver.handle)
})
