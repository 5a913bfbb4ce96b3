import type { Buffer } from 'node:buffer'
import { requestFingerprint } from '../../http/index.js'
import { isKnownEvent, parseWebhookEvent, type WebhookEvent } from '../events/event.js'
import type { WebhookEventError, WebhookEventIssue } from '../events/event-error.js'

/** The event that a delivery brings, or why it is refused. */
export type Delivered =
  | {
      readonly refusal: null
      /** What the handler gets. */
      readonly event: object
      readonly id: string
      /** As it was sent. */
      readonly type: string
      /** `null`: there is none, since the event is nested too deeply. */
      readonly fingerprint: string | null
    }
  | { readonly refusal: 'body_malformed' }
  | {
      readonly refusal: 'event_invalid'
      readonly issues: readonly WebhookEventIssue[]
      /** What was sent: it may say which event it is, all the same. */
      readonly of: unknown
    }

/** Reads a delivery in the payments service's envelope. Type and payload as they were sent make two the same. */
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
  // As it was sent: what is parsed may say more of it in a later version. No request has a method in lower case.
  const fingerprint = requestFingerprint('event', type, (sent as { readonly payload: unknown }).payload)
  return { refusal: null, event, id: event.id, type, fingerprint }
}

/** RFC 8259 §8.1: "MUST be encoded using UTF-8". Bytes that are not must not be read as something else. */
const UTF_8 = new TextDecoder('utf-8', { fatal: true })
