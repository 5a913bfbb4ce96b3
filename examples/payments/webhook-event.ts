import type { IdempotencyContext } from 'once-per-key'
import type { KnownWebhookEvent } from 'once-per-key/webhooks'
import { newId } from './ledger.js'

/** What an operation has to tell. */
export type EventContent = {
  readonly [Event in KnownWebhookEvent as Event['type']]: Pick<Event, 'type' | 'date' | 'payload'>
}[KnownWebhookEvent['type']]

/**
 * The event of an operation. Its id comes from the operation's key: an attempt that takes over, here or in another
 * process, tells the same event again, and a receiver sees that it is the same.
 */
export function eventOf(content: EventContent, idempotency: IdempotencyContext | undefined): KnownWebhookEvent {
  return { id: idempotency === undefined ? newId('evt') : `evt_${idempotency.deriveKey('event')}`, ...content }
}
