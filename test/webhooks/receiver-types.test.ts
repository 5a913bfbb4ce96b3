import { createServer, type IncomingMessage } from 'node:http'
import connect from 'connect'
import express from 'express'
import express4 from 'express4'
import { MemoryStore } from 'once-per-key/memory'
import {
  type MandateSetupStartedEvent,
  type MerchantUpdatedEvent,
  type UnknownEvent,
  type WebhookEventIssue,
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

test('an event of a refused delivery says which, and what is wrong', () => {
  webhookReceiver({
    ...rest,
    on: {},
    onEvent: (event) => {
      if (event.type !== 'rejected') return
      const { source, eventId, eventType, issues = [] } = event
      expectTypeOf([source, eventId, eventType]).toEqualTypeOf<(string | undefined)[]>()
      expectTypeOf(issues).toEqualTypeOf<readonly WebhookEventIssue[]>()
    },
  })
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

interface Paid {
  readonly id: string
  readonly type: 'invoice.paid'
  readonly payload: { readonly amount: number }
}
interface Deleted {
  readonly id: string
  readonly type: 'customer.deleted'
  readonly payload: { readonly customer: string }
}
const parseUnion = (raw: Buffer): Paid | Deleted => JSON.parse(raw.toString())

test('with parse, each handler gets what parse answers for its type', () => {
  webhookReceiver({
    ...rest,
    parse: parseUnion,
    on: {
      'invoice.paid': (event, { source }) => {
        expectTypeOf(event).toEqualTypeOf<Paid>()
        expectTypeOf(source).toEqualTypeOf<string>()
      },
      'customer.deleted': (event) => expectTypeOf(event).toEqualTypeOf<Deleted>(),
    },
    onUnknownEvent: (event) => expectTypeOf(event).toEqualTypeOf<Paid | Deleted>(),
  })
  // @ts-expect-error a type that parse does not answer
  webhookReceiver({ ...rest, parse: parseUnion, on: { 'invoice.payed': () => {} } })
  // @ts-expect-error a field that the event of this type does not have
  webhookReceiver({ ...rest, parse: parseUnion, on: { 'invoice.paid': (event) => event.payload.customer } })
  // @ts-expect-error an event without an id
  webhookReceiver({ ...rest, parse: () => ({ type: 'a', payload: {} }), on: {} })
})

test('with a parse of any types, handlers may have any name', () => {
  webhookReceiver({
    ...rest,
    parse: (raw, headers) => {
      expectTypeOf(raw).toEqualTypeOf<Buffer>()
      const payload = JSON.parse(raw.toString()) as { readonly amount: number }
      return { id: String(headers['x-id']), type: String(headers['x-type']), payload }
    },
    on: {
      'orders/create': ({ payload }) => expectTypeOf(payload.amount).toEqualTypeOf<number>(),
      ping: ({ id, type }) => expectTypeOf([id, type]).toEqualTypeOf<string[]>(),
    },
  })
})

test('one event may have several types, and parse may take its time', () => {
  webhookReceiver({
    ...rest,
    parse: async () => ({ id: '1', type: 'a' as 'a' | 'b', payload: { n: 1 }, more: true }),
    on: { a: (event) => expectTypeOf(event).toMatchTypeOf<{ type: 'a'; payload: { n: number }; more: boolean }>() },
  })
})
