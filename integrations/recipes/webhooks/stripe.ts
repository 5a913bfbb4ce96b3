import type { Store } from 'once-per-key'
import { stripeWebhooks, type WebhookReceiver, webhookReceiver } from 'once-per-key/receiver'
import type { Stripe } from 'stripe'

export interface StripeParts {
  readonly store: Store
  /** The signing secret of the endpoint, as Stripe shows it: `whsec_…`. */
  readonly secret: string
  /** What is done once for each paid invoice. */
  readonly book: (invoice: Stripe.Invoice, idempotencyKey: string) => Promise<unknown>
}

/** The events of Stripe, each once. Mount it at a path of its own, before body parsers. */
export function stripeReceiver({ store, secret, book }: StripeParts): WebhookReceiver {
  return webhookReceiver({
    store,
    source: 'stripe',
    verify: stripeWebhooks({ secrets: [secret] }),
    parse: (raw): StripeEvent => {
      const { id, type, data, created } = JSON.parse(raw.toString())
      return { id, type, payload: data.object, created } // `pending_webhooks` changes from one try to the next: the id alone counts
    },
    firstSent: ({ created }) => new Date(created * 1_000),
    on: {
      'invoice.paid': ({ payload: invoice }, { deriveKey }) => book(invoice, deriveKey('booking')),
    },
  })
}

/** One event for each type that Stripe knows: handlers get the object that belongs to theirs. */
type StripeEvent<Event = Stripe.Event> = Event extends Stripe.Event
  ? {
      readonly id: string
      readonly type: Event['type']
      readonly payload: Event['data']['object']
      /** In seconds since 1970. */
      readonly created: number
    }
  : never
