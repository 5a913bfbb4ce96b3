import type { WebhookEventIssue } from '../../events/event-error.js'

/** The event in a delivery, or why the delivery is refused. */
export type Delivered =
  | {
      readonly refusal: null
      /** What the handler gets. */
      readonly event: object
      readonly id: string
      /** As sent. */
      readonly type: string
      /** `null` if the event is nested too deeply to be hashed. */
      readonly fingerprint: string | null
    }
  | { readonly refusal: 'body_malformed' }
  | {
      readonly refusal: 'event_invalid'
      readonly issues: readonly WebhookEventIssue[]
      /** The parsed body of the refused delivery: it may still contain the event's id and type. */
      readonly of: unknown
    }
