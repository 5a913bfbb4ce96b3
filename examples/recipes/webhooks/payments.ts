import type { Store } from 'once-per-key'
import { standardWebhooks, type WebhookReceiver, webhookReceiver } from 'once-per-key/webhooks'

export interface PaymentsParts {
  readonly store: Store
  /** `whsec_` and the base64 of 24 to 64 random bytes. */
  readonly secret: string
  /** What is done once for each event. */
  readonly rename: (merchantId: string | null | undefined, name: string | null | undefined) => Promise<unknown>
}

/** The payments service's events, each once. Mount it before body parsers: a signature covers the raw bytes. */
export function paymentsReceiver({ store, secret, rename }: PaymentsParts): WebhookReceiver {
  return webhookReceiver({
    store,
    source: 'payments',
    verify: standardWebhooks({ secrets: [secret] }),
    on: {
      merchant_updated: (event) => rename(event.payload.id, event.payload.displayName),
    },
  })
}
