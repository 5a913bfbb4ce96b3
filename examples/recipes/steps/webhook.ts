import type { Store } from 'once-per-key'
import { type WebhookReceiver, webhookReceiver } from 'once-per-key/receiver'
import { fulfil, type Others } from './order.js'

/** The sender sends an event again until it gets 200: each delivery goes on after the steps that are done. */
export function orderReceiver(store: Store, others: Others, verify: (raw: Buffer) => boolean): WebhookReceiver {
  return webhookReceiver({
    store,
    source: 'shop',
    verify,
    parse: (raw) => JSON.parse(raw.toString()),
    on: { order_placed: ({ payload }, context) => fulfil(context, payload, others) },
  })
}
