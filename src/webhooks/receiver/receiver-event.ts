import { warnOnce, warnUnheard } from '../../core/index.js'
import type { IdempotencyEvent } from '../../http/index.js'
import type { WebhookEventIssue } from '../events/event-error.js'
import type { RefusalCode } from './refusal.js'

/** Which event of a sender's a delivery brings, as far as that is known. */
export interface AboutDelivery {
  /** Whose event it is; absent where `source` is a function and the delivery was refused before it was asked. */
  readonly source?: string
  /** The event's id: at most its first 255 characters. */
  readonly eventId?: string
  /** The event's type, as it was sent: at most its first 255 characters. */
  readonly eventType?: string
}

/** What happened. No payloads, no signatures. */
export type WebhookReceiverEvent =
  | IdempotencyEvent
  /**
   * A delivery was refused before anything ran. `issues`, for `event_invalid`: what is wrong with the event, without values.
   * Of a delivery that `verify` did not take nothing is told that it says of itself.
   */
  | ({
      readonly type: 'rejected'
      readonly code: Exclude<RefusalCode, 'handler_failed' | 'receiver_failed'>
      readonly issues?: readonly WebhookEventIssue[]
    } & AboutDelivery)
  /** Nobody handles events of this type, so it was acknowledged, and nothing ran (only where `parse` is given). */
  | { readonly type: 'ignored'; readonly source: string; readonly eventId: string; readonly eventType: string }
  /** A handler threw; its sender was told 500. */
  | {
      readonly type: 'handler_failed'
      readonly scope: string
      readonly key: string
      readonly attempt: number
      readonly error: unknown
    }
  /** Misuse by the application, or a failure, where there is no `next` to tell; the sender was told 500. */
  | { readonly type: 'receiver_failed'; readonly error: unknown }

/** The event of a sender's that was seen in a delivery, cut short: what is refused may say anything of itself. */
export function eventIn(sent: unknown): Pick<AboutDelivery, 'eventId' | 'eventType'> {
  const { id, type } = (sent ?? {}) as { readonly id?: unknown; readonly type?: unknown }
  return {
    ...(typeof id === 'string' && { eventId: id.slice(0, MOST_CHARACTERS) }),
    ...(typeof type === 'string' && { eventType: type.slice(0, MOST_CHARACTERS) }),
  }
}

/**
 * The listener of a receiver that has none: whoever loses events must hear of it. What a handler throws is printed each
 * time, since nobody else would hear of it; a refusal once for each of its reasons, without the event's id.
 */
export function printUnheard(event: WebhookReceiverEvent): void {
  switch (event.type) {
    case 'rejected':
      warnOfRefusal(event.code, whyIn(event))
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
    `A webhook delivery was refused (${reason}${why}). Its sender may give it up, and the event is lost. This is printed ` +
      'once for each reason; `onEvent` hears of each delivery.',
    reason,
  )
}

/** The first few issues, and the type: neither is a secret. */
function whyIn(event: Extract<WebhookReceiverEvent, { type: 'rejected' }>): string {
  const { eventType, issues = [] } = event as { eventType?: string; issues?: readonly WebhookEventIssue[] }
  const lines = issues.slice(0, MOST_ISSUES).map(({ path, message }) => `; ${path || 'the event'}: ${message}`)
  return `${eventType === undefined ? '' : `, type ${JSON.stringify(eventType)}`}${lines.join('')}`
}

const MOST_CHARACTERS = 255
const MOST_ISSUES = 3
