import { Buffer } from 'node:buffer'
import type { Store } from 'once-per-key/core'
import { MemoryStore } from 'once-per-key/memory'
import {
  type CommonReceiverOptions,
  type MerchantUpdatedEvent,
  type ParseDelivery,
  type ParsedEvent,
  type WebhookContext,
  type WebhookHandler,
  type WebhookReceiver,
  type WebhookReceiverEvent,
  type WebhookReceiverOptions,
  webhookReceiver,
} from 'once-per-key/webhooks'
import { onTestFinished } from 'vitest'
import { type Binding, type ErrorStep, listen, type Running, type Step } from './bindings.js'
import { type Connection, connectTo, type RawReply } from './raw-client.js'

export const MERCHANT_PATH = '/api/service/webhook-event/merchant_updated'

/** An event as its sender writes it. */
export const merchantUpdated = (over: object = {}): object => ({
  id: 'evt_1',
  type: 'merchant_updated',
  date: '2026-11-20T10:00:00Z',
  payload: { id: 'mer_1', displayName: 'Acme' },
  ...over,
})

export interface Delivery {
  readonly method?: string
  readonly path?: string
  readonly headers?: Readonly<Record<string, string>>
  /** Bytes or text as they are, or a value as JSON. */
  readonly body?: unknown
}

/** The bytes of a delivery; a header that is given as '' is left out. */
export function deliveryBytes({ method = 'POST', path = MERCHANT_PATH, headers = {}, body }: Delivery = {}): Buffer {
  const value = body === undefined ? merchantUpdated() : body
  const content = typeof value === 'string' || value instanceof Uint8Array ? value : JSON.stringify(value)
  const bytes = Buffer.from(content as Buffer)
  const all = { Host: 'test', 'Content-Type': 'application/json', 'Content-Length': String(bytes.length), ...headers }
  const lines = Object.entries(all).flatMap(([name, line]) => (line === '' ? [] : [`${name}: ${line}`]))
  return Buffer.concat([Buffer.from(`${[`${method} ${path} HTTP/1.1`, ...lines].join('\r\n')}\r\n\r\n`), bytes])
}

/** Begins a delivery on a connection of its own, which goes when the test ends. */
export function begin(port: number, delivery?: Delivery): Connection {
  const connection = connectTo(port)
  onTestFinished(() => void connection.socket.destroy())
  connection.socket.write(deliveryBytes(delivery))
  return connection
}

export async function deliver(port: number, delivery?: Delivery): Promise<RawReply> {
  const connection = begin(port, delivery)
  try {
    return await connection.reply(delivery?.method)
  } finally {
    connection.socket.destroy()
  }
}

export interface Receiving extends Running {
  readonly store: Store
  readonly receiver: WebhookReceiver
  readonly events: WebhookReceiverEvent[]
  /** Resolves with the first event of this type. */
  seen(type: WebhookReceiverEvent['type']): Promise<WebhookReceiverEvent>
  /** The events that were handled, and with what, in order. */
  readonly handled: { readonly event: MerchantUpdatedEvent; readonly context: WebhookContext }[]
  /** What reached the application's error handling. */
  readonly errors: unknown[]
}

export interface Setting {
  /** Of a receiver of the payments service's events, or with `parse` of any sender's. */
  readonly options?: Partial<CommonReceiverOptions> & {
    readonly parse?: ParseDelivery<ParsedEvent> | undefined
    readonly on?: object
    readonly onUnknownEvent?: WebhookHandler<never> | undefined
  }
  readonly handler?: (event: MerchantUpdatedEvent, context: WebhookContext) => unknown
  /** Mounted before the receiver. */
  readonly before?: readonly Step[]
  readonly mount?: (receiver: WebhookReceiver) => Step
}

/** Serves a receiver of `merchant_updated`, for one test, on a free port. What it hands on is answered with 418. */
export async function receive(binding: Binding, setting: Setting = {}): Promise<Receiving> {
  const { options, handler = () => {}, before = [], mount = (receiver) => receiver } = setting
  const events: WebhookReceiverEvent[] = []
  const errors: unknown[] = []
  const handled: Receiving['handled'] = []
  const listeners = new Set<() => void>()
  const store = options?.store ?? new MemoryStore()
  const receiver = webhookReceiver({
    source: 'payments',
    verify: false,
    on: {
      merchant_updated(event: MerchantUpdatedEvent, context: WebhookContext) {
        handled.push({ event, context })
        return handler(event, context)
      },
    },
    ...options,
    store,
    onEvent(event: WebhookReceiverEvent) {
      events.push(event)
      for (const look of listeners) look()
    },
  } as unknown as WebhookReceiverOptions)
  const handedOn: Step = (_req, res) => {
    res.statusCode = 418
    res.end()
  }
  const onError: ErrorStep = (error, _req, res, _next) => {
    errors.push(error)
    res.statusCode = 500
    res.end('the application')
  }
  const running = await listen(binding.listener([...before, mount(receiver) as Step, handedOn], onError))
  onTestFinished(running.close)
  const seen = (type: WebhookReceiverEvent['type']): Promise<WebhookReceiverEvent> =>
    new Promise((resolve) => {
      const look = () => {
        const found = events.find((event) => event.type === type)
        if (found !== undefined) resolve(found)
      }
      listeners.add(look)
      look()
    })
  return { ...running, store, receiver, events, seen, handled, errors }
}
