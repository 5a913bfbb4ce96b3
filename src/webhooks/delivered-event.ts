import type { Buffer } from 'node:buffer'
import { isKnownEvent, parseWebhookEvent, type WebhookEvent } from './event.js'
import type { WebhookEventError, WebhookEventIssue } from './event-error.js'

/** The event that a delivery brings, or why it is refused. */
export type Delivered =
  | {
      readonly refusal: null
      readonly event: WebhookEvent
      /** As it was sent. */
      readonly type: string
      /** As it was sent: what is parsed may say more of it in a later version. */
      readonly payload: unknown
    }
  | { readonly refusal: 'body_malformed' }
  | { readonly refusal: 'event_invalid'; readonly issues: readonly WebhookEventIssue[] }

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
    return { refusal: 'event_invalid', issues: (error as WebhookEventError).issues }
  }
  const type = isKnownEvent(event) ? event.type : event.sentType
  return { refusal: null, event, type, payload: (sent as { readonly payload: unknown }).payload }
}

/** RFC 8259 §8.1: "MUST be encoded using UTF-8". Bytes that are not must not be read as something else. */
const UTF_8 = new TextDecoder('utf-8', { fatal: true })
