import { z } from 'zod/v4'
import type { Kind } from './document-fields.js'

/** The fields that a schema names, by path, with their kinds: what the schema itself says of them. */
export function fieldsOf(schema: z.core.$ZodType, path = ''): Record<string, Kind> {
  const inner = bare(schema)
  const self = path === '' ? {} : { [path]: kindOf(inner) }
  const element = elementIn(inner)
  if (element !== null) return { ...self, ...fieldsOf(element, `${path}[0]`) }
  if (!(inner instanceof z.ZodObject)) return self
  const members = Object.entries(inner.shape as z.core.$ZodShape)
  return Object.assign(self, ...members.map(([name, field]) => fieldsOf(field, path === '' ? name : `${path}.${name}`)))
}

/** A schema without what lets its value be missing or null. */
export function bare(schema: z.core.$ZodType): z.core.$ZodType {
  return schema instanceof z.ZodOptional || schema instanceof z.ZodNullable ? bare(schema.unwrap()) : schema
}

/** The schema of a list's elements; `null` for what is no list. */
export function elementIn(schema: z.core.$ZodType): z.core.$ZodType | null {
  return schema instanceof z.ZodPipe && 'element' in schema ? (schema.element as z.core.$ZodType) : null
}

function kindOf(schema: z.core.$ZodType): Kind {
  if (schema instanceof z.ZodString || schema instanceof z.ZodLiteral) return 'string'
  if (schema instanceof z.ZodNumber) return 'number'
  if (schema instanceof z.ZodBoolean) return 'boolean'
  if (schema instanceof z.ZodObject) return 'object'
  if (elementIn(schema) !== null) return 'array'
  if (schema instanceof z.ZodUnknown) return 'not specified'
  throw new Error(`A kind of schema that nothing is known of: ${schema._zod.def.type}`)
}
