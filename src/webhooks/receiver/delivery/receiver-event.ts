import { warnOnce, warnUnheard } from '../../../core/index.js'
import type { IdempotencyEvent } from '../../../http/index.js'
import type { WebhookEventIssue } from '../../events/event-error.js'
import type { ReceiverRefusalCode } from './refusal.js'

export interface DeliverySummary {
  /** Who owns the event; absent if `source` is a function that was not called before the delivery was refused. */
  readonly source?: string
  /** The event's id, cut to 255 characters. */
  readonly eventId?: string
  /** The event's type as sent, cut to 255 characters. */
  readonly eventType?: string
}

/** What happened. Contains no payloads and no signatures. An `error` is a copy of what was thrown, which JSON and loggers show. */
export type WebhookReceiverEvent =
  | Exclude<IdempotencyEvent, { readonly type: 'rejected' }>
  /**
   * A delivery was refused before any handler ran. `issues`, for `event_invalid`, lists the first hundred things that are wrong,
   * without values. If `verify` refused the delivery, nothing that it contains is included.
   */
  | ({
      readonly type: 'rejected'
      readonly code: Exclude<ReceiverRefusalCode, 'handler_failed' | 'receiver_failed'>
      readonly issues?: readonly WebhookEventIssue[]
    } & DeliverySummary)
  /** No handler exists for this type; it was acknowledged and nothing ran (only with `parse`). Id and type are cut as above. */
  | { readonly type: 'ignored'; readonly source: string; readonly eventId: string; readonly eventType: string }
  /** A handler threw; the sender got 500. Not `operation_taken`, by which a duplicate ends with `effects: 'in-transaction'`. */
  | {
      readonly type: 'handler_failed'
      readonly scope: string
      readonly key: string
      readonly attempt: number
      readonly error: unknown
    }
  /** Misuse by the application, or a failure, when there is no `next` to pass it to; the sender got 500. */
  | { readonly type: 'receiver_failed'; readonly error: unknown }

/** Id and type of a delivery's event, cut short: a refused delivery may contain anything. */
export function readEventSummary(sent: unknown): Pick<DeliverySummary, 'eventId' | 'eventType'> {
  const { id, type } = (sent ?? {}) as { readonly id?: unknown; readonly type?: unknown }
  return {
    ...(typeof id === 'string' && { eventId: truncate(id) }),
    ...(typeof type === 'string' && { eventType: truncate(type) }),
  }
}

/** A sender's words, as far as they fit into a line of a log. */
export function truncate(text: string): string {
  return text.slice(0, MOST_CHARACTERS)
}

/**
 * The default listener, so that no event is lost silently. A handler's error is printed each time, since nothing else
 * reports it; a refusal once per reason, without the event's id.
 */
export function printByDefault(event: WebhookReceiverEvent): void {
  switch (event.type) {
    case 'rejected':
      warnOfRefusal(event.code, describeRejection(event))
      break
    case 'mismatched':
    case 'outcome_unknown':
    case 'answer_not_kept':
      warnOfRefusal(event.type)
      break
    case 'handler_failed':
    case 'receiver_failed':
      console.error(event.error)
      break
    case 'ignored':
      break
    default:
      warnUnheard(event)
  }
}

function warnOfRefusal(reason: string, why = ''): void {
  warnOnce(
    'ONCE_PER_KEY_WEBHOOK_REFUSED',
    `A webhook delivery was refused (${reason}${why}). ${ADVICE[reason] ?? ''}If its sender stops retrying, the event is lost. This is printed ` +
      'once per reason; `onEvent` receives every refusal.',
    reason,
  )
}

const ADVICE: Readonly<Record<string, string>> = {
  path_unknown: 'Mount the receiver where the sender delivers, or serve one URL for all types with `receiver.handle`. ',
  mismatched: 'Another event has been received under its id: see what `source` tells apart. ',
  signature_refused:
    "Compare the secret with the sender's for this endpoint, see that the receiver gets the raw bytes, and check this machine's clock. ",
}

/** The first few issues and the type; neither contains a secret. */
function describeRejection(event: Extract<WebhookReceiverEvent, { type: 'rejected' }>): string {
  const { eventType, issues = [] } = event
  const lines = issues
    .slice(0, MOST_ISSUES)
    .map(({ path, message }) => `; ${truncate(`${path || 'the event'}: ${message}`)}`)
  return escapeControlCharacters(
    `${eventType === undefined ? '' : `, type ${JSON.stringify(eventType)}`}${lines.join('')}`,
  )
}

/** Types and members are named by the sender: nothing of it begins another line of a log, or steers a terminal. */
function escapeControlCharacters(text: string): string {
  return text.replace(/[\p{Cc}\p{Cf}\u2028\u2029]/gu, (sign) => `\\u{${sign.codePointAt(0)?.toString(16)}}`)
}

const MOST_CHARACTERS = 255
const MOST_ISSUES = 3
