import type { Store } from 'once-per-key'
import { type WebhookReceiver, webhookReceiver } from 'once-per-key/receiver'
import { Stripe } from 'stripe'

export interface StripeParts {
  readonly store: Store
  readonly stripe: Stripe
  /** The signing secret of the endpoint, as Stripe shows it: `whsec_…`. */
  readonly secret: string
  /** What is done once for each paid invoice. */
  readonly book: (invoice: Stripe.Invoice, idempotencyKey: string) => Promise<unknown>
}

/** The events of Stripe, each once. Mount it at a path of its own, before body parsers. */
export function stripeReceiver({ store, stripe, secret, book }: StripeParts): WebhookReceiver {
  return webhookReceiver({
    store,
    source: 'stripe',
    verify: (raw, headers) => isSigned(stripe, raw, headers['stripe-signature'] ?? '', secret),
    parse: (raw): StripeEvent => {
      const { id, type, data } = JSON.parse(raw.toString())
      return { id, type, payload: data.object } // `pending_webhooks` changes from one try to the next: the id alone counts
    },
    on: {
      'invoice.paid': ({ payload: invoice }, { deriveKey }) => book(invoice, deriveKey('booking')),
    },
  })
}

/** One event for each type that Stripe knows: handlers get the object that belongs to theirs. */
type StripeEvent<Event = Stripe.Event> = Event extends Stripe.Event
  ? { readonly id: string; readonly type: Event['type']; readonly payload: Event['data']['object'] }
  : never

/** What `constructEvent` throws for a wrong signature is an answer; anything else is a mistake, such as an empty secret. */
function isSigned(stripe: Stripe, raw: Buffer, header: string | string[], secret: string): boolean {
  try {
    stripe.webhooks.constructEvent(raw, header, secret)
    return true
  } catch (error) {
    if (error instanceof Stripe.errors.StripeSignatureVerificationError) return false
    throw error
  }
}
