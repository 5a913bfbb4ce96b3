import type { Buffer } from 'node:buffer'
import { requestFingerprint } from '../../http/index.js'
import { isKnownEvent, parseWebhookEvent, type WebhookEvent } from '../events/event.js'
import type { WebhookEventError, WebhookEventIssue } from '../events/event-error.js'

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

/** Reads a delivery in the payments service's envelope. The fingerprint covers type and payload as sent. */
export function deliveredEvent(raw: Buffer): Delivered {
  let sent: unknown
  try {
    sent = JSON.parse(UTF_8.decode(raw))
  } catch {
    return { refusal: 'body_malformed' }
  }
  let event: WebhookEvent
  try {
    event = parseWebhookEvent(sent)
  } catch (error) {
    if ((error as WebhookEventError).code !== 'event_invalid') throw error
    return { refusal: 'event_invalid', issues: (error as WebhookEventError).issues, of: sent }
  }
  const type = isKnownEvent(event) ? event.type : event.sentType
  // From the payload as sent: a later version may parse it differently. 'event' cannot be an HTTP request's method
  // (lower case).
  const fingerprint = requestFingerprint('event', type, (sent as { readonly payload: unknown }).payload)
  return { refusal: null, event, id: event.id, type, fingerprint }
}

/** RFC 8259 §8.1: "MUST be encoded using UTF-8". Invalid bytes are an error, not replaced. */
const UTF_8 = new TextDecoder('utf-8', { fatal: true })
