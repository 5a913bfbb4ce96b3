import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import { isKnownEvent, parseWebhookEvent } from '../../src/webhooks/events/event.js'
import { WebhookEventError } from '../../src/webhooks/events/event-error.js'
import { envelopeSchema } from '../../src/webhooks/events/fields.js'
import { mandateSetupStartedEventSchema } from '../../src/webhooks/events/mandate-setup-started.js'
import { merchantUpdatedEventSchema } from '../../src/webhooks/events/merchant-updated.js'
import { sentFor } from './arbitrary-events.js'

const known = {
  mandate_setup_started: sentFor(mandateSetupStartedEventSchema),
  merchant_updated: sentFor(merchantUpdatedEventSchema),
}

describe.each(Object.entries(known))('any %s', (type, sent) => {
  test('is read as it was sent, with the fields that nobody knows, and what was sent stays as it was', () => {
    let fieldsSeen = 0
    fc.assert(
      fc.property(sent, (event) => {
        const before = structuredClone(event)
        const parsed = parseWebhookEvent(event)
        expect(parsed).toStrictEqual(before)
        expect(event).toStrictEqual(before)
        expect(parsed.type).toBe(type)
        expect(isKnownEvent(parsed)).toBe(true)
        expect(parseWebhookEvent(parsed)).toStrictEqual(parsed)
        fieldsSeen += Object.keys(parsed.payload).length
      }),
    )
    expect(fieldsSeen).toBeGreaterThan(100)
  })
})

test('any event of another type is unknown, with all that was sent', () => {
  fc.assert(
    fc.property(sentFor(envelopeSchema), (sent) => {
      const { type, ...rest } = sent as { type: string }
      fc.pre(!Object.hasOwn(known, type))
      expect(parseWebhookEvent(sent)).toStrictEqual({ ...rest, type: 'unknown', sentType: type })
    }),
  )
})

test('any JSON at all is an event or a WebhookEventError', () => {
  const type = fc.oneof(fc.constantFrom(...Object.keys(known)), fc.jsonValue())
  const almost = fc.record(
    { id: fc.jsonValue(), type, date: fc.jsonValue(), payload: fc.jsonValue() },
    { requiredKeys: [] },
  )
  fc.assert(
    fc.property(fc.oneof(fc.jsonValue(), almost), (sent) => {
      try {
        expect(['unknown', ...Object.keys(known)]).toContain(parseWebhookEvent(sent).type)
      } catch (error) {
        expect(error).toBeInstanceOf(WebhookEventError)
        expect((error as WebhookEventError).issues.length).toBeGreaterThan(0)
      }
    }),
    { numRuns: 500 },
  )
})
