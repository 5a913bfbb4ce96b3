import { z } from 'zod/v4'
import { expected, openObject, text } from './fields.js'

/** The fields of every webhook event. All four are required. */
export interface WebhookEnvelope {
  /** Identifies the event: the same in each delivery of it. Never empty. */
  readonly id: string
  /** The kind of event: determines the shape of `payload`. */
  readonly type: string
  /** The date of the event as sent; the format is not documented. */
  readonly date: string
  /** The content of the event. */
  readonly payload: object
}

// All events with an empty id would count as one. So would ids that differ only in their lone surrogate: UTF-8 encodes
// each of them as the same replacement character.
const id = text
  .min(1, { error: expected('an id that is not empty') })
  .refine((one) => one.isWellFormed(), { error: expected('an id without a lone surrogate') })

/** An event of one known type. */
export function eventSchemaOf<const Type extends string, Payload extends z.ZodType<object>>(
  type: Type,
  payload: Payload,
) {
  return openObject({ id, type: z.literal(type, { error: expected(JSON.stringify(type)) }), date: text, payload })
}

/** An event of any type. */
export const envelopeSchema = openObject({ id, type: text, date: text, payload: openObject({}) })
