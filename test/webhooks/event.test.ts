import { Buffer } from 'node:buffer'
import { describe, expect, test } from 'vitest'
import {
  isKnownEvent,
  parseWebhookEvent,
  webhookEventSchema,
  webhookEventTypes,
} from '../../src/webhooks/events/event.js'
import { WebhookEventError } from '../../src/webhooks/events/event-error.js'
import { put, wholeEvent } from './whole-event.js'

const envelope = { id: 'evt_1', date: '2026-01-01' }

describe('an event of another type', () => {
  test.each(['payout_settled', '', 'unknown', 'MERCHANT_UPDATED', ' merchant_updated', 'constructor', '__proto__'])(
    'is unknown, and keeps all that was sent: %j',
    (type) => {
      const payload = { hasApiKey: 'yes', nested: { list: [null, 1] } }
      const event = parseWebhookEvent({ ...envelope, type, payload, attempt: 2 })
      expect(event).toStrictEqual({ ...envelope, type: 'unknown', sentType: type, payload, attempt: 2 })
      expect(isKnownEvent(event)).toBe(false)
    },
  )

  test('says what type was sent, whatever it calls its own members', () => {
    const event = parseWebhookEvent({ ...envelope, type: 'b', sentType: 'merchant_updated', payload: {} })
    expect(event).toMatchObject({ type: 'unknown', sentType: 'b' })
  })
})

test('the known types are those of the document', () => {
  expect(webhookEventTypes).toEqual(['mandate_setup_started', 'merchant_updated'])
})

test('an event of a known type with a wrong payload is an error, never unknown', () => {
  for (const type of webhookEventTypes) {
    for (const payload of [null, undefined, [], 'text', { id: 1, referenceId: 1 }]) {
      expect(() => parseWebhookEvent({ ...envelope, type, payload })).toThrow(WebhookEventError)
    }
  }
})

describe('an error', () => {
  const wrong = wholeEvent('merchant_updated')
  put(wrong, 'id', 17)
  delete wrong.date
  put(wrong, 'payload.apps', [{}, {}, { hasApiKey: 'secret' }])
  put(wrong, 'payload.users', ['a', null])
  put(wrong, 'payload.notificationSettings.webhookFailure.emailNotification.emails', [17, 'secret'])
  put(wrong, 'payload.onboardingData.beneficiaries', [{ idDocs: [{ number: 1 }] }])
  put(wrong, 'payload.applicationFeeShare', JSON.parse('1e400'))

  const problems = [
    { path: 'date', message: 'expected a string; seen: nothing' },
    { path: 'id', message: 'expected a string; seen: a number' },
    { path: 'payload.applicationFeeShare', message: 'expected a finite number; seen: a number' },
    { path: 'payload.apps[2].hasApiKey', message: 'expected a boolean; seen: a string' },
    {
      path: 'payload.notificationSettings.webhookFailure.emailNotification.emails[0]',
      message: 'expected a string; seen: a number',
    },
    { path: 'payload.onboardingData.beneficiaries[0].idDocs[0].number', message: 'expected a string; seen: a number' },
    { path: 'payload.users[1]', message: 'expected a string; seen: null' },
  ]

  test('lists every problem with its path and the kind of what was seen, and no value', () => {
    const error = errorOf(wrong)
    expect(error.issues.toSorted((a, b) => (a.path < b.path ? -1 : 1))).toEqual(problems)
    for (const { path, message } of problems) expect(error.message).toContain(`\n  - ${path}: ${message}`)
    expect(error.message).not.toContain('secret')
    expect([error.name, error.code]).toEqual(['WebhookEventError', 'event_invalid'])
  })

  test.each([undefined, null, 'secret', 7, true, ['secret']])('names the event where it is no object: %j', (sent) => {
    const error = errorOf(sent)
    expect(error.issues).toEqual([{ path: '', message: expect.stringMatching(/^expected an object; seen: /) }])
    expect(error.message).toMatch(
      /^The webhook event is not as documented:\n {2}- the event: expected an object; seen: /,
    )
    expect(error.message).not.toContain('secret')
  })

  test.each([
    { name: 'its text', sent: ' {"id":"secret"}', kind: 'a string' },
    { name: 'its bytes', sent: Buffer.from('{"id":"secret"}'), kind: 'an object (Buffer)' },
    { name: 'its bytes in an ArrayBuffer', sent: new ArrayBuffer(2), kind: 'an object (ArrayBuffer)' },
  ])('says what to do where a body was given as $name', ({ sent, kind }) => {
    const message = `expected an object; seen: ${kind}; call JSON.parse first`
    expect(errorOf(sent).issues).toEqual([{ path: '', message }])
  })

  test('holds the first thousand problems of a list, and a message that one can read', () => {
    const users = Array.from({ length: 5_000 }, () => 1)
    const error = errorOf({ ...envelope, type: 'merchant_updated', payload: { users, appId: 1 } })
    expect(error.issues.map(({ path }) => path)).toEqual([
      'payload.appId',
      ...Array.from({ length: 1_000 }, (_, index) => `payload.users[${index}]`),
    ])
    expect(error.message.split('\n')).toHaveLength(102)
    expect(error.message).toContain('and 901 more')
  })

  test('holds hardly more where lists are in lists: half a million of them took seconds', () => {
    const beneficiaries = Array.from({ length: 500 }, () => ({ types: Array.from({ length: 999 }, () => 1) }))
    const error = errorOf({ ...envelope, type: 'merchant_updated', payload: { onboardingData: { beneficiaries } } })
    expect(error.issues).toHaveLength(2 * 999)
    expect(error.issues.at(-1)?.path).toBe('payload.onboardingData.beneficiaries[1].types[998]')
  })

  test('of the schema has the same problems and paths, inside another schema too', async () => {
    const { issues = [] } = webhookEventSchema.safeParse(wrong).error ?? {}
    const paths = issues.map(({ path }) => path.join('.'))
    expect(paths).toContain('payload.apps.2.hasApiKey')
    const list = webhookEventSchema.array()
    const nested = list.safeParse([wrong, wrong]).error?.issues.map(({ path }) => path.join('.'))
    expect(nested).toEqual([...paths.map((path) => `0.${path}`), ...paths.map((path) => `1.${path}`)])
    expect((await webhookEventSchema.safeParseAsync(wrong)).error?.issues).toHaveLength(paths.length)
  })
})

describe('what the document does not know', () => {
  test('survives at every level', () => {
    const sent = wholeEvent('merchant_updated')
    for (const path of [
      'extra',
      'payload.extra',
      'payload.plan.extra',
      'payload.apps[0].extra',
      'payload.apps[0].notificationSettings.webhookFailure.emailNotification.extra',
      'payload.onboardingData.beneficiaries[0].idDocs[0].extra',
      'payload.marketCapabilitySettings[0].extra',
    ]) {
      put(sent, path, { list: [1, null, { deep: true }] })
    }
    expect(parseWebhookEvent(sent)).toStrictEqual(sent)
  })

  test('is data even where it is named __proto__: nothing gets another prototype', () => {
    const foreign = '"__proto__": { "isAdmin": true }'
    const text = `{ "id": "evt_1", "date": "d", ${foreign}, "type": "merchant_updated", "payload": { ${foreign},
      "plan": { ${foreign} }, "apps": [{ ${foreign}, "climateActionMode": { ${foreign} } }], "pairedMerchantId": { ${foreign} } } }`
    for (const type of ['merchant_updated', 'payout_settled']) {
      const event = parseWebhookEvent({ ...JSON.parse(text), type })
      for (const value of objectsIn(event)) {
        expect(Object.getPrototypeOf(value)).toBe(Array.isArray(value) ? Array.prototype : Object.prototype)
        expect(value).not.toHaveProperty('isAdmin', expect.anything())
      }
    }
    expect({}).not.toHaveProperty('isAdmin')
  })

  test('may be nested deeper than any stack', () => {
    const extra = JSON.parse('['.repeat(100_000) + ']'.repeat(100_000))
    const event = parseWebhookEvent({ ...envelope, type: 'merchant_updated', payload: { extra, createdAt: extra } })
    expect((event.payload as { extra?: unknown }).extra).toBe(extra)
    expect(errorOf({ ...envelope, type: 'merchant_updated', payload: { id: extra } }).issues).toHaveLength(1)
  })
})

function errorOf(sent: unknown): WebhookEventError {
  try {
    parseWebhookEvent(sent)
  } catch (error) {
    if (error instanceof WebhookEventError) return error
    throw error
  }
  throw new Error('No error was thrown')
}

/** Every object in a value, but for what stands under a member that is named __proto__: that is data as it was sent. */
function objectsIn(value: unknown): object[] {
  if (typeof value !== 'object' || value === null) return []
  const members = Object.entries(value).filter(([name]) => name !== '__proto__')
  return [value, ...members.flatMap(([, member]) => objectsIn(member))]
}
