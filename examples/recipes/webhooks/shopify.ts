import type { IncomingMessage } from 'node:http'
import type { Store } from 'once-per-key'
import { shopifyWebhooks, type WebhookReceiver, webhookReceiver } from 'once-per-key/receiver'
import { headerOf } from './header.js'

export interface ShopifyParts {
  readonly store: Store
  /** The client secret of the app. */
  readonly secret: string
  /** What is done once for each order. */
  readonly fulfil: (shop: string, order: number) => Promise<unknown>
}

/** The webhooks of Shopify, each once. Mount it at a path of its own, before body parsers. */
export function shopifyReceiver({ store, secret, fulfil }: ShopifyParts): WebhookReceiver {
  return webhookReceiver({
    store,
    source: (req: IncomingMessage | Request) => headerOf(req.headers, 'x-shopify-shop-domain'),
    verify: shopifyWebhooks({ secrets: [secret] }),
    parse: (raw, headers) => ({
      id: headerOf(headers, 'x-shopify-webhook-id'), // the same for each try
      type: headerOf(headers, 'x-shopify-topic'),
      payload: JSON.parse(raw.toString()),
    }),
    on: { 'orders/create': ({ payload: order }, { source: shop }) => fulfil(shop, order.id) },
  })
}
