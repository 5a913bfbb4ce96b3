import type { Buffer } from 'node:buffer'
import { requestFingerprint } from '../../http/index.js'
import { isKnownEvent, parseWebhookEvent, type WebhookEvent, webhookEventTypes } from '../events/event.js'
import type { WebhookEventError } from '../events/event-error.js'
import type { Delivered } from './parsing/delivered-event.js'
import type { Sender } from './parsing/sender.js'

/** The payments service, as its document shows its deliveries. */
export const documentedSender: Sender = {
  types: webhookEventTypes,
  // "Content-Type: application/json", with or without parameters. Other JSON types have their own envelopes.
  contentType: /^\s*application\/json\s*(?:;|$)/i,
  typeInPath,
  read: deliveredEvent,
}

/** "{webhook_receiver_url}/api/service/webhook-event/<type>", below any mount point. */
const DELIVERY_PATH = /\/api\/service\/webhook-event\/([^/]+)\/?$/

/** The type in a delivery's path, as written there; `null` if the path is not a delivery's. */
function typeInPath(target: string): string | null {
  const [path = ''] = target.split('?', 1)
  const written = DELIVERY_PATH.exec(path)?.[1]
  if (written === undefined) return null
  try {
    return decodeURIComponent(written)
  } catch {
    return written // Malformed percent-encoding: matches no event type.
  }
}

/** Reads a delivery in the payments service's envelope. The fingerprint covers type and payload as sent. */
function deliveredEvent(raw: Buffer): Delivered {
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
