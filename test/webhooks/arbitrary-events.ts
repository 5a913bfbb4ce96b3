import fc from 'fast-check'
import { z } from 'zod/v4'
import { bare, elementIn } from './schema-fields.js'

/** What a schema takes, as JSON carries it: fields present, missing and null, and some that nobody knows. */
export function sentFor(schema: z.core.$ZodType): fc.Arbitrary<unknown> {
  return valuesFor(schema).map((value) => JSON.parse(JSON.stringify(value)))
}

function valuesFor(schema: z.core.$ZodType): fc.Arbitrary<unknown> {
  if (schema instanceof z.ZodOptional || schema instanceof z.ZodNullable) return fc.option(valuesFor(schema.unwrap()))
  const element = elementIn(schema)
  if (element !== null) return fc.array(valuesFor(element), { maxLength: 3 })
  if (schema instanceof z.ZodObject) return membersOf(schema.shape)
  if (schema instanceof z.ZodLiteral) return fc.constantFrom(...schema.values)
  if (schema instanceof z.ZodUnknown) return fc.jsonValue()
  if (schema instanceof z.ZodBoolean) return fc.boolean()
  if (schema instanceof z.ZodNumber) return fc.double({ noNaN: true, noDefaultInfinity: true })
  if (schema instanceof z.ZodString) return fc.string({ unit: 'binary', minLength: schema.minLength ?? 0 })
  throw new Error(`Nothing is generated for ${schema._zod.def.type}`)
}

function membersOf(shape: z.core.$ZodShape): fc.Arbitrary<unknown> {
  const known = Object.fromEntries(Object.entries(shape).map(([name, field]) => [name, valuesFor(field)]))
  const requiredKeys = Object.keys(shape).filter((name) => bare(shape[name] as z.core.$ZodType) === shape[name])
  const unknown = fc.dictionary(
    fc.string({ unit: 'binary' }).filter((name) => !Object.hasOwn(shape, name) && name !== '__proto__'),
    fc.jsonValue(),
    { maxKeys: 2 },
  )
  return fc.tuple(fc.record(known, { requiredKeys }), unknown).map(([fields, more]) => ({ ...more, ...fields }))
}
