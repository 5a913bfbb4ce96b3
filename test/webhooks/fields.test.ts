import { describe, expect, test } from 'vitest'
import { isKnownEvent, parseWebhookEvent } from '../../src/webhooks/events/event.js'
import { WebhookEventError } from '../../src/webhooks/events/event-error.js'
import { mandateSetupStartedEventSchema } from '../../src/webhooks/events/mandate-setup-started.js'
import { merchantUpdatedEventSchema } from '../../src/webhooks/events/merchant-updated.js'
import { documentedFields, envelopeFields, type Fields, type Kind } from './document-fields.js'
import { fieldsOf } from './schema-fields.js'
import { put, remove, wholeEvent } from './whole-event.js'

const types = ['mandate_setup_started', 'merchant_updated'] as const

/** A value of each kind that JSON knows. */
const JSON_VALUES = { string: 'yes', number: 1, boolean: true, object: { a: 1 }, array: ['a'] } as const

/** The kind of JSON value that a kind of field wants; `null`: any. */
const WANTED: Readonly<Record<Kind, keyof typeof JSON_VALUES | null>> = {
  string: 'string',
  enumeration: 'string',
  number: 'number',
  boolean: 'boolean',
  object: 'object',
  array: 'array',
  'not specified': null,
}

/** Right values at the edges. */
const RIGHT: Readonly<Record<Kind, readonly unknown[]>> = {
  string: ['', 'text', '\u0000\ud800', 'constructor'],
  enumeration: ['', 'a value that no sample shows'],
  number: [0, -1.5, Number.MAX_VALUE],
  boolean: [true, false],
  object: [{}],
  array: [[]],
  'not specified': [...Object.values(JSON_VALUES), 0, '', false, [[]], '2026-01-01T00:00:00Z', 1_767_225_600_000],
}

const cases = types.flatMap((type) => {
  const fields: Fields = documentedFields[type]
  const payload = Object.entries(fields).filter(([path]) => !Object.hasOwn(envelopeFields, path))
  return payload.map(([path, kind]) => ({ type, path, kind, isElement: path.endsWith(']') }))
})

test.each(types)('a %s with a right value in each documented field is read as it was sent', (type) => {
  const event = parseWebhookEvent(wholeEvent(type))
  expect(event).toStrictEqual(wholeEvent(type))
  expect(isKnownEvent(event)).toBe(true)
})

describe('a field of the payload', () => {
  test.each(cases)('$path ($kind of $type) takes every right value', ({ type, path, kind }) => {
    for (const value of RIGHT[kind]) {
      const sent = withValue(type, path, value)
      expect(parseWebhookEvent(sent)).toStrictEqual(withValue(type, path, value))
    }
  })

  test.each(cases)('$path ($kind of $type) may be missing', ({ type, path }) => {
    const sent = wholeEvent(type)
    remove(sent, path)
    expect(parseWebhookEvent(sent)).toStrictEqual(sent)
  })

  test.each(cases.filter((one) => !one.isElement))('$path ($kind of $type) may be null', ({ type, path }) => {
    const sent = withValue(type, path, null)
    expect(parseWebhookEvent(sent)).toStrictEqual(sent)
  })

  test.each(cases.filter((one) => one.isElement && one.kind !== 'not specified'))(
    '$path ($kind of $type) is an element, which null is none of',
    ({ type, path }) => {
      expect(problemPaths(withValue(type, path, null))).toEqual([path])
    },
  )

  test.each(cases.filter(({ kind }) => WANTED[kind] !== null))(
    '$path ($kind of $type) takes no value of another kind, and the error says where',
    ({ type, path, kind }) => {
      const wrong = Object.entries(JSON_VALUES).filter(([name]) => name !== WANTED[kind])
      expect(wrong).toHaveLength(4)
      for (const [, value] of wrong) expect(problemPaths(withValue(type, path, value))).toEqual([path])
    },
  )
})

describe('a field of the envelope', () => {
  const envelope = Object.keys(envelopeFields)
  const sentTypes = [...types, 'payout_settled']
  const required = sentTypes.flatMap((type) => envelope.map((field) => ({ type, field })))

  test.each(required)('$field of $type is required', ({ type, field }) => {
    const sent: Record<string, unknown> = { ...wholeEvent('mandate_setup_started'), payload: {}, type }
    expect(parseWebhookEvent(sent)).toMatchObject({ id: sent.id, payload: {} })
    const { [field]: _, ...rest } = sent
    expect(problemPaths(rest)).toEqual([field])
    for (const value of [null, 1, true, ['a'], field === 'payload' ? 'yes' : { a: 1 }]) {
      expect(problemPaths({ ...sent, [field]: value })).toEqual([field])
    }
  })

  test('id is never empty, since an empty one would make all events one', () => {
    for (const id of ['', '\ud800', 'evt_\udc00']) {
      for (const type of sentTypes) expect(problemPaths({ id, type, date: '', payload: {} })).toEqual(['id'])
    }
  })
})

describe('the schemas', () => {
  const schemas = {
    mandate_setup_started: mandateSetupStartedEventSchema,
    merchant_updated: merchantUpdatedEventSchema,
  }

  test.each(types)('of %s name the fields of the document, with their kinds, and no others', (type) => {
    const documented: Fields = documentedFields[type]
    // To a schema an enumeration of which only samples are known is a string.
    const kinds = Object.entries(documented).map(([path, kind]) => [path, kind === 'enumeration' ? 'string' : kind])
    expect(fieldsOf(schemas[type])).toEqual(Object.fromEntries(kinds))
  })

  test('are for the type that they are named after', () => {
    expect(mandateSetupStartedEventSchema.safeParse(wholeEvent('mandate_setup_started')).success).toBe(true)
    expect(mandateSetupStartedEventSchema.safeParse(wholeEvent('merchant_updated')).error?.issues).toMatchObject([
      { path: ['type'], message: 'expected "mandate_setup_started"; seen: a string' },
    ])
  })
})

function withValue(type: keyof typeof documentedFields, path: string, value: unknown): object {
  const event = wholeEvent(type)
  put(event, path, structuredClone(value))
  return event
}

function problemPaths(sent: unknown): string[] {
  try {
    parseWebhookEvent(sent)
    return []
  } catch (error) {
    if (error instanceof WebhookEventError) return error.issues.map(({ path }) => path)
    throw error
  }
}
