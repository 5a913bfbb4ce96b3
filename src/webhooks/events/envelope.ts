import { z } from 'zod/v4'
import { expected, openObject, text } from './fields.js'

/** What every webhook event has. All four fields are required. */
export interface WebhookEnvelope {
  /** Identifies the event: the same each time that it is delivered. Never empty. */
  readonly id: string
  /** The kind of event: decides the shape of `payload`. */
  readonly type: string
  /** The date of the event, as it was sent: the format is not documented. */
  readonly date: string
  /** What the event is about. */
  readonly payload: object
}

// An empty id would make all events one, and half of a surrogate pair is the same half in all of them once it is encoded.
const id = text
  .min(1, { error: expected('an id that is not empty') })
  .refine((one) => one.isWellFormed(), { error: expected('an id without half of a surrogate pair') })

/** An event of one known type. */
export function eventSchemaOf<const Type extends string, Payload extends z.ZodType<object>>(
  type: Type,
  payload: Payload,
) {
  return openObject({ id, type: z.literal(type, { error: expected(JSON.stringify(type)) }), date: text, payload })
}

/** An event of any type. */
export const envelopeSchema = openObject({ id, type: text, date: text, payload: openObject({}) })
