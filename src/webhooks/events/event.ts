import { z } from 'zod/v4'
import { describeKind } from '../../core/index.js'
import { formatPath, WebhookEventError } from './event-error.js'
import { addIssues, envelopeSchema, type WebhookEnvelope } from './fields.js'
import { type MandateSetupStartedEvent, mandateSetupStartedEventSchema } from './mandate-setup-started.js'
import { type MerchantUpdatedEvent, merchantUpdatedEventSchema } from './merchant-updated.js'

/** An event of a type that this version knows. */
export type KnownWebhookEvent = MandateSetupStartedEvent | MerchantUpdatedEvent

/** The types that this version knows, as senders write them. */
export type WebhookEventType = KnownWebhookEvent['type']

/** An event; switch on its `type`. */
export type WebhookEvent = KnownWebhookEvent | UnknownEvent

/**
 * An event of a type that this version does not know: its envelope was checked, its payload was not. To parse an event
 * a second time, for example after a queue, keep the original body: an `UnknownEvent` does not have the sender's
 * format.
 */
export interface UnknownEvent extends WebhookEnvelope {
  /** The same for every unknown type. The original type is in `sentType`. */
  readonly type: 'unknown'
  /** The type as sent. */
  readonly sentType: string
  /** The payload as sent. */
  readonly payload: Readonly<Record<string, unknown>>
}

const knownEventSchemas = {
  mandate_setup_started: mandateSetupStartedEventSchema,
  merchant_updated: merchantUpdatedEventSchema,
} satisfies Record<WebhookEventType, z.ZodType<KnownWebhookEvent>>

export const webhookEventTypes = Object.freeze(Object.keys(knownEventSchemas)) as readonly WebhookEventType[]

const unknownEventSchema = envelopeSchema.transform(
  ({ type: sentType, ...event }): UnknownEvent => ({ ...event, type: 'unknown', sentType }),
)

/**
 * Parses what a sender delivered into an event. Fields that are not documented survive, at every level (except a member
 * named `__proto__`). An event of an unknown type becomes an `UnknownEvent`; one of a known type whose payload is wrong
 * is an error, never unknown. All problems are reported together, of a list as far as the first thousand.
 */
export const webhookEventSchema: z.ZodType<WebhookEvent, unknown> = z.unknown().transform((sent, context) => {
  const result = selectEventSchema(sent).safeParse(sent)
  if (result.success) return result.data
  addIssues(context, result.error.issues, { path: [], input: sent })
  return z.NEVER
})

/**
 * Returns the event in what a sender delivered: the result of `JSON.parse`, not the text. The argument is not modified.
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
 *     return log(`no handler for ${event.sentType}`)
 * }
 * ```
 */
export function parseWebhookEvent(sent: unknown): WebhookEvent {
  const result = selectEventSchema(sent).safeParse(sent)
  if (result.success) return result.data
  throw new WebhookEventError(result.error.issues.map(({ path, message }) => ({ path: formatPath(path), message })))
}

/** Whether the type of an event is one that this version knows. */
export function isKnownEvent(event: WebhookEvent): event is KnownWebhookEvent {
  return event.type !== 'unknown'
}

function selectEventSchema(sent: unknown): z.ZodType<WebhookEvent> {
  if (isUnparsed(sent)) return unparsedSchema
  const type = (sent as { readonly type?: unknown } | null | undefined)?.type
  return isKnownType(type) ? knownEventSchemas[type] : unknownEventSchema
}

/** Whether a body was passed without JSON.parse: bytes, or the text of an object. */
function isUnparsed(sent: unknown): boolean {
  return ArrayBuffer.isView(sent) || sent instanceof ArrayBuffer || (typeof sent === 'string' && /^\s*\{/.test(sent))
}

const unparsedSchema = z.custom<WebhookEvent>(() => false, {
  error: ({ input }) => `expected an object; seen: ${describeKind(input)}; call JSON.parse first`,
})

function isKnownType(type: unknown): type is WebhookEventType {
  return typeof type === 'string' && Object.hasOwn(knownEventSchemas, type)
}
