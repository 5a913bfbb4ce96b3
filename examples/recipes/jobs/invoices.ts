import type { Store } from 'once-per-key/core'
import { runner } from 'once-per-key/run'

/** An interface is JSON as well as a type alias is. */
export interface Invoice {
  readonly merchant: string
  readonly id: string
  readonly cents: number
}

/** Sends the mail; a sender that knows a repeat by its key sends it once, even where a process dies in the middle. */
export type Mail = (invoice: Invoice, idempotencyKey: string) => Promise<{ readonly messageId: string }>

/** Sends each invoice once, whoever asks how often. */
export function invoiceSender(store: Store, mail: Mail) {
  const once = runner({ store, name: 'invoices' })

  return (invoice: Invoice) =>
    once({ scope: invoice.merchant, key: invoice.id, input: invoice }, async ({ deriveKey }) => {
      const { messageId } = await mail(invoice, deriveKey('mail'))
      return { messageId, sentAt: new Date().toISOString() }
    })
}
