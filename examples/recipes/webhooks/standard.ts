import type { Store } from 'once-per-key'
import { standardWebhooks, type WebhookReceiver, webhookReceiver } from 'once-per-key/receiver'
import { headerOf } from './header.js'

export interface StandardParts {
  readonly store: Store
  /** The sender's public keys (`whpk_…`, signatures `v1a`), or the secrets that you share with it (`whsec_…`, `v1`). */
  readonly keys: { readonly publicKeys: readonly string[] } | { readonly secrets: readonly string[] }
  /** What is done once for each paid invoice. */
  readonly book: (invoice: { readonly id: string }, idempotencyKey: string) => Promise<unknown>
}

/** The events of a sender that follows Standard Webhooks, each once. */
export function standardReceiver({ store, keys, book }: StandardParts): WebhookReceiver {
  return webhookReceiver({
    store,
    source: 'billing',
    verify: standardWebhooks(keys),
    parse: (raw, headers) => {
      const { type, timestamp, data } = JSON.parse(raw.toString())
      return { id: headerOf(headers, 'webhook-id'), type, payload: data, created: new Date(timestamp) }
    },
    firstSent: ({ created }) => created, // the event's own time: `webhook-timestamp` is new in each try
    on: { 'invoice.paid': ({ payload: invoice }, { deriveKey }) => book(invoice, deriveKey('booking')) },
  })
}
