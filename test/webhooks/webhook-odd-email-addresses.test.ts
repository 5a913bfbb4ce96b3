import { parseWebhookEvent, webhookEventSchema } from 'once-per-key/webhooks'
import { expect, test } from 'vitest'
import { BINDINGS } from '../support/bindings.js'
import { deliver, merchantUpdated, receive } from '../support/deliveries.js'

const ODD = ['', ' ', '<string>', 'Ada Lovelace <ada@example.com>', 'ada@example.com.', 'ada@example.com ', 'nobody']

test.each(ODD)('an odd e-mail address does not lose the event: %j', (address) => {
  const mandate = { userNotificationEmail: address }
  const emailNotification = { active: true, emails: [address, 'ada@example.com'] }
  const settings = { notificationSettings: { webhookFailure: { emailNotification } } }
  const events = [
    { type: 'mandate_setup_started', payload: mandate },
    { type: 'merchant_updated', payload: { email: address, ...settings, apps: [settings] } },
  ]
  for (const event of events) {
    const sent = { id: 'evt_1', date: '2026-01-01', ...event }
    expect(parseWebhookEvent(sent)).toStrictEqual(sent)
    expect(webhookEventSchema.parse(sent)).toStrictEqual(sent)
  }
})

const [express5] = BINDINGS as [(typeof BINDINGS)[0]]

test('an event with an odd address is handled and acknowledged', async () => {
  const { port, handled } = await receive(express5)
  const emailNotification = { active: true, emails: ['<string>'] }
  const payload = { id: 'mer_1', notificationSettings: { webhookFailure: { emailNotification } } }
  expect((await deliver(port, { body: merchantUpdated({ payload }) })).status).toBe(200)
  expect(handled.map(({ event }) => event.payload)).toEqual([payload])
})
