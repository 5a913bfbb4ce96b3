import { z } from 'zod/v4'
import { describeKind } from '../../core/index.js'

export const text = z.string({ error: createIssueMessage('a string') })
export const flag = z.boolean({ error: createIssueMessage('a boolean') })
export const finiteNumber = z.number({ error: createIssueMessage('a finite number') })
/** For fields without a documented type: any JSON value. */
export const anything = z.unknown()

/** An enumeration of which only some values are known: accepts any string; editors suggest the known values. */
export function createSampledEnum<Sample extends string>(): z.ZodType<Sample | (string & {}), string> {
  return text
}

/** Zod takes microseconds for each issue, and a body of 1 MiB has room for half a million wrong elements. */
const MOST_ISSUES = 1_000

/** Reads no further than the first thousand issues. `element` is there for whoever reads schemas, as in `z.array()`. */
export function createListSchema<Element extends z.ZodType>(element: Element) {
  const list = z.array(anything, { error: createIssueMessage('an array') }).transform((sent, context) => {
    const elements: z.output<Element>[] = []
    for (const [index, one] of sent.entries()) {
      const { data, error } = element.safeParse(one)
      if (error === undefined) elements.push(data as z.output<Element>)
      else addIssues(context, error.issues, { path: [index], input: sent })
      if (context.issues.length >= MOST_ISSUES) break
    }
    return context.issues.length === 0 ? elements : z.NEVER
  })
  return Object.assign(list, { element })
}

/** Adds the issues of another schema, for what is at `path` in the input. */
export function addIssues(
  context: Pick<z.RefinementCtx, 'issues'>,
  issues: readonly z.core.$ZodIssue[],
  { path, input }: { readonly path: readonly PropertyKey[]; readonly input: unknown },
): void {
  for (const issue of issues) {
    context.issues.push({ ...issue, path: [...path, ...issue.path], input } as z.core.$ZodRawIssue)
  }
}

/** Known fields may be missing or null; unknown fields survive. */
export function createTolerantObject<Shape extends Readonly<Record<string, z.ZodType>>>(shape: Shape) {
  const fields = Object.entries(shape).map(([name, schema]) => [name, schema.nullish()])
  return createOpenObject(Object.fromEntries(fields) as TolerantShape<Shape>)
}

/** Known fields are required; unknown fields survive. A member `__proto__` is dropped. */
function createOpenObject<Shape extends Readonly<Record<string, z.ZodType>>>(shape: Shape) {
  return z.looseObject(shape, { error: createIssueMessage('an object') }).overwrite(ensurePlainPrototype)
}

/** A message with the kind of the value, never its content. Always English, whatever language zod is set to. */
function createIssueMessage(what: string): (issue: { readonly input?: unknown }) => string {
  return ({ input }) => `expected ${what}; seen: ${input === undefined ? 'nothing' : describeKind(input)}`
}

type TolerantShape<Shape extends Readonly<Record<string, z.ZodType>>> = {
  -readonly [Name in keyof Shape]: z.ZodOptional<z.ZodNullable<Shape[Name]>>
}

/** Older releases of zod copy unknown members by assignment, so a member `__proto__` would replace the prototype. */
function ensurePlainPrototype<Output extends object>(output: Output): Output {
  return Object.getPrototypeOf(output) === Object.prototype ? output : { ...output }
}

/** The part before the last `@`: either quoted, or without white space and without RFC 5322's specials. */
const LOCAL_PART = String.raw`(?:"[^"\p{Cc}]+"|[^\s\p{Cc}()<>\[\]:;@\\,"]+)`
/** The part after it: labels in any script, also without a dot; or an address literal, for example `[192.0.2.1]`. */
const DOMAIN = String.raw`(?:\[[^\s\p{Cc}\[\]@]+\]|[^\s\p{Cc}()<>\[\]:;@\\,".]+(?:\.[^\s\p{Cc}()<>\[\]:;@\\,".]+)*)`
const EMAIL_ADDRESS = new RegExp(`^${LOCAL_PART}@${DOMAIN}$`, 'u')

/**
 * Whether a text looks like one bare e-mail address, without a display name. Call it before you write to an address
 * from an event. Parsing does not refuse an event because of its address: the event would be lost.
 *
 * Lenient: `o!brien@example.com`, `root@localhost` and `用户@例子.公司` are valid. It does not check that the mailbox exists.
 *
 * @example if (looksLikeEmailAddress(payload.userNotificationEmail)) await remind(payload.userNotificationEmail)
 */
export function looksLikeEmailAddress(text: string | null | undefined): text is string {
  return typeof text === 'string' && EMAIL_ADDRESS.test(text)
}

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
  .min(1, { error: createIssueMessage('an id that is not empty') })
  .refine((one) => one.isWellFormed(), { error: createIssueMessage('an id without a lone surrogate') })

/** An event of one known type. */
export function createEventSchema<const Type extends string, Payload extends z.ZodType<object>>(
  type: Type,
  payload: Payload,
) {
  return createOpenObject({
    id,
    type: z.literal(type, { error: createIssueMessage(JSON.stringify(type)) }),
    date: text,
    payload,
  })
}

/** An event of any type. */
export const envelopeSchema = createOpenObject({ id, type: text, date: text, payload: createOpenObject({}) })
