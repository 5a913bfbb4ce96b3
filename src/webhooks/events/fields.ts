import { z } from 'zod/v4'
import { kindOf } from '../../core/index.js'

export const text = z.string({ error: expected('a string') })
export const flag = z.boolean({ error: expected('a boolean') })
export const finiteNumber = z.number({ error: expected('a finite number') })
/** For fields without a documented type: any JSON value. */
export const anything = z.unknown()

/** An enumeration of which only some values are known: accepts any string; editors suggest the known values. */
export function sampled<Sample extends string>(): z.ZodType<Sample | (string & {}), string> {
  return text
}

export function listOf<Element extends z.ZodType>(element: Element) {
  return z.array(element, { error: expected('an array') })
}

/** Known fields may be missing or null; unknown fields survive. */
export function tolerantObject<Shape extends Readonly<Record<string, z.ZodType>>>(shape: Shape) {
  const fields = Object.entries(shape).map(([name, schema]) => [name, schema.nullish()])
  return openObject(Object.fromEntries(fields) as Tolerant<Shape>)
}

/** Known fields are required; unknown fields survive. A member `__proto__` is dropped. */
export function openObject<Shape extends Readonly<Record<string, z.ZodType>>>(shape: Shape) {
  return z.looseObject(shape, { error: expected('an object') }).overwrite(withoutForeignPrototype)
}

/** A message with the kind of the value, never its content. Always English, whatever language zod is set to. */
export function expected(what: string): (issue: { readonly input?: unknown }) => string {
  return ({ input }) => `expected ${what}; seen: ${input === undefined ? 'nothing' : kindOf(input)}`
}

type Tolerant<Shape extends Readonly<Record<string, z.ZodType>>> = {
  -readonly [Name in keyof Shape]: z.ZodOptional<z.ZodNullable<Shape[Name]>>
}

/** Older releases of zod copy unknown members by assignment, so a member `__proto__` would replace the prototype. */
function withoutForeignPrototype<Output extends object>(output: Output): Output {
  return Object.getPrototypeOf(output) === Object.prototype ? output : { ...output }
}
