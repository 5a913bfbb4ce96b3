import { z } from 'zod/v4'
import { kindOf } from '../../core/index.js'
import { envelopeSchema, type WebhookEnvelope } from './envelope.js'
import { WebhookEventError, writtenPath } from './event-error.js'
import { type MandateSetupStartedEvent, mandateSetupStartedEventSchema } from './mandate-setup-started.js'
import { type MerchantUpdatedEvent, merchantUpdatedEventSchema } from './merchant-updated.js'

/** An event of a type that this version knows. */
export type KnownWebhookEvent = MandateSetupStartedEvent | MerchantUpdatedEvent

/** The types that this version knows, as senders write them. */
export type WebhookEventType = KnownWebhookEvent['type']

/** An event; a `switch` on `type` tells which. */
export type WebhookEvent = KnownWebhookEvent | UnknownEvent

/**
 * An event of a type that this version does not know: its envelope was checked, its payload was not. To check an event once
 * more, such as behind a queue, keep what was sent: an `UnknownEvent` is none that a sender sends.
 */
export interface UnknownEvent extends WebhookEnvelope {
  /** Stands for every type that is not known. What was sent is in `sentType`. */
  readonly type: 'unknown'
  /** The type as it was sent. */
  readonly sentType: string
  /** The payload as it was sent. */
  readonly payload: Readonly<Record<string, unknown>>
}

const knownEventSchemas = {
  mandate_setup_started: mandateSetupStartedEventSchema,
  merchant_updated: merchantUpdatedEventSchema,
} satisfies Record<WebhookEventType, z.ZodType<KnownWebhookEvent>>

/** The types that this version knows. */
export const webhookEventTypes = Object.freeze(Object.keys(knownEventSchemas)) as readonly WebhookEventType[]

const unknownEventSchema = envelopeSchema.transform(
  ({ type: sentType, ...event }): UnknownEvent => ({ ...event, type: 'unknown', sentType }),
)

/**
 * What a sender delivers, in; an event, out. Fields that are not documented survive, at every level (a member named
 * `__proto__` does not). An event of another type becomes an `UnknownEvent`; one of a known type whose payload is wrong is an
 * error, never unknown. All problems are reported at once.
 */
export const webhookEventSchema: z.ZodType<WebhookEvent, unknown> = z.unknown().transform((sent, context) => {
  const result = schemaFor(sent).safeParse(sent)
  if (result.success) return result.data
  for (const issue of result.error.issues) {
    context.issues.push({ ...issue, path: [...issue.path], input: sent } as z.core.$ZodRawIssue)
  }
  return z.NEVER
})

/**
 * The event in what a sender delivered: a body after `JSON.parse`, not its text. The argument is left as it was.
 *
 * @throws WebhookEventError which lists every problem, with its path.
 *
 * @example
 * ```ts
 * const event = parseWebhookEvent(JSON.parse(body))
 * switch (event.type) {
 *   case 'merchant_updated':
 *     return rename(event.payload.id, event.payload.displayName)
 *   case 'mandate_setup_started':
 *     return remind(event.payload.userNotificationEmail)
 *   case 'unknown':
 *     return log(`nobody handles ${event.sentType}`)
 * }
 * ```
 */
export function parseWebhookEvent(sent: unknown): WebhookEvent {
  const result = schemaFor(sent).safeParse(sent)
  if (result.success) return result.data
  throw new WebhookEventError(result.error.issues.map(({ path, message }) => ({ path: writtenPath(path), message })))
}

/** Whether the type of an event is one that this version knows. */
export function isKnownEvent(event: WebhookEvent): event is KnownWebhookEvent {
  return event.type !== 'unknown'
}

function schemaFor(sent: unknown): z.ZodType<WebhookEvent> {
  if (isUnparsed(sent)) return unparsedSchema
  const type = (sent as { readonly type?: unknown } | null | undefined)?.type
  return isKnownType(type) ? knownEventSchemas[type] : unknownEventSchema
}

/** A body as it came, given by mistake: bytes, or the text of an object. */
function isUnparsed(sent: unknown): boolean {
  return ArrayBuffer.isView(sent) || sent instanceof ArrayBuffer || (typeof sent === 'string' && /^\s*\{/.test(sent))
}

const unparsedSchema = z.custom<WebhookEvent>(() => false, {
  error: ({ input }) => `expected an object; seen: ${kindOf(input)}, to which JSON.parse comes first`,
})

function isKnownType(type: unknown): type is WebhookEventType {
  return typeof type === 'string' && Object.hasOwn(knownEventSchemas, type)
}
