import type { Buffer } from 'node:buffer'
import type { IncomingMessage } from 'node:http'
import { computeRequestFingerprint, parseComparableBody } from '../../http/index.js'
import {
  isKnownEvent,
  type KnownWebhookEvent,
  parseWebhookEvent,
  type UnknownEvent,
  type WebhookEvent,
  webhookEventTypes,
} from '../events/event.js'
import type { WebhookEventError } from '../events/event-error.js'
import type { AnyRequest } from './delivery/delivery.js'
import type { DeliveryReading, ParsedEvent, SenderProtocol } from './parse.js'
import { createReceiver, type WebhookReceiver } from './receiver.js'
import type {
  CommonReceiverOptions,
  WebhookHandlers as HandlersOf,
  ParsedReceiverOptions,
  RawReceiverOptions,
  WebhookHandler,
} from './receiver-options.js'

/** A handler for each type of event: by default of the payments service's. */
export type WebhookHandlers<Event extends ParsedEvent = KnownWebhookEvent> = HandlersOf<Event>

/**
 * Options for the payments service's events: its envelope, at `POST …/api/service/webhook-event/<type>`, as
 * application/json.
 */
export interface WebhookReceiverOptions<Req extends AnyRequest = IncomingMessage> extends CommonReceiverOptions<Req> {
  readonly parse?: undefined

  /** A handler for each type of event. */
  readonly on: WebhookHandlers

  /**
   * Handles events of types that this version does not know.
   *
   * Without it they are refused with 501 and an event (`rejected`, `event_unhandled`), as are events of a known type
   * that has no handler in `on`. Senders retry for days what was not acknowledged, so a handler that is deployed by
   * then still receives them, and nothing is lost silently. Subscribe only to what you handle. To ignore the rest, say
   * so: `onUnknownEvent: () => {}`, and for each known type a handler in `on` that does nothing.
   * @default none
   */
  readonly onUnknownEvent?: WebhookHandler<UnknownEvent> | undefined

  /**
   * When the event was created: its own time, never that of a delivery. If it is so long ago that an earlier delivery may be
   * forgotten, the event is refused with 409 `key_expired` and not handled. An invalid date, or one more than `clockSkewMs` in
   * the future, is 400 `event_invalid`. Needs a store with `inspect`.
   * @default none: nothing is checked
   */
  readonly firstSent?: ((event: WebhookEvent) => Date | undefined) | undefined
}

/**
 * Receives webhook events and handles each at most once to success: it uses the middleware's engine and keeps the same
 * promises. By default it takes the payments service's events at `POST …/api/service/webhook-event/<type>` below its
 * mount point, and passes requests for other paths to `next`. Mount it before body parsers: a signature covers the raw
 * bytes.
 *
 * The sender gets 200 after the handler resolved, and for a repeat of such an event; 500 if it throws; 409 while it
 * runs, and for another event with the same id; 400, 401, 413, 415 and 501 for what is refused before anything runs;
 * 503 if the store cannot be reached. If the client disconnects, the handler continues, and its result counts.
 *
 * Misuse by the application is passed to `next` as an IdempotencyError; no handler runs, and nothing is stored.
 *
 * @example
 * const receiver = webhookReceiver({
 *   store: new MemoryStore(),
 *   source: 'payments',
 *   verify: standardWebhooks({ secrets: [secret] }),
 *   on: { merchant_updated: async (event) => rename(event.payload.id, event.payload.displayName) },
 * })
 * app.use(receiver)
 *
 * @throws IdempotencyError `options_invalid`, which lists every mistake; nothing was built.
 */
export function webhookReceiver<Req extends AnyRequest = IncomingMessage>(
  options: WebhookReceiverOptions<Req>,
): WebhookReceiver
/**
 * The same for any other sender, whose deliveries `parse` reads: `webhookReceiver` of `once-per-key/receiver`, which
 * needs no zod.
 */
export function webhookReceiver<Event extends ParsedEvent, Req extends AnyRequest = IncomingMessage>(
  options: ParsedReceiverOptions<Event, Req>,
): WebhookReceiver
export function webhookReceiver<Req extends AnyRequest>(given: RawReceiverOptions<Req>): WebhookReceiver {
  return createReceiver(given, documentedSender)
}

/** The payments service, as its document shows its deliveries. */
const documentedSender: SenderProtocol = {
  types: webhookEventTypes,
  // "Content-Type: application/json", with or without parameters. Other JSON types have their own envelopes.
  contentType: /^\s*application\/json\s*(?:;|$)/i,
  findTypeInPath: parseDeliveryPath,
  read: parseDocumentedDelivery,
}

/** "{webhook_receiver_url}/api/service/webhook-event/<type>", below any mount point. */
const DELIVERY_PATH = /\/api\/service\/webhook-event\/([^/]+)\/?$/

/** The type in a delivery's path, as written there; `null` if the path is not a delivery's. */
function parseDeliveryPath(target: string): string | null {
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
function parseDocumentedDelivery(raw: Buffer): DeliveryReading {
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
  const { body } = parseComparableBody(raw, JSON_TYPE)
  const fingerprint = computeRequestFingerprint('event', type, (body as { readonly payload: unknown }).payload)
  return { refusal: null, event, id: event.id, type, fingerprint }
}

/** Of each delivery that is read. */
const JSON_TYPE = ['Content-Type', 'application/json']

/** RFC 8259 §8.1: "MUST be encoded using UTF-8". Invalid bytes are an error, not replaced. */
const UTF_8 = new TextDecoder('utf-8', { fatal: true })
