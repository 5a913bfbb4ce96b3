import { MemoryStore } from 'once-per-key/memory'
import type { WebhookReceiverOptions } from 'once-per-key/webhooks'
import { expect, test, vi } from 'vitest'
import { heardWarnings } from '../support/warnings.js'

// A handler's throw leaves the outcome unknown. With `unknownOutcome: 'refuse'` the sender's retries, which are there to
// repair just that, are all refused.

async function warningsOf(...all: readonly Partial<WebhookReceiverOptions>[]): Promise<readonly string[]> {
  const warnings = heardWarnings()
  vi.resetModules()
  const { webhookReceiver } = await import('once-per-key/webhooks')
  for (const options of all) {
    const store = new MemoryStore()
    webhookReceiver({ store, source: 'payments', verify: false, on: {}, onEvent: () => {}, ...options })
  }
  await new Promise((resolve) => setImmediate(resolve))
  return warnings.map(({ code }) => code)
}

test('a receiver that would refuse every retry warns at construction, once in a process', async () => {
  const refusing = { unknownOutcome: 'refuse' } as const
  expect(await warningsOf(refusing, refusing)).toEqual(['ONCE_PER_KEY_WEBHOOK_RETRIES_REFUSED'])
})

test.each([{}, { unknownOutcome: 'rerun' }, { unknownOutcome: 'refuse', effects: 'declared' }] as const)(
  'one that runs them does not: %j',
  async (options) => {
    expect(await warningsOf(options)).toEqual([])
  },
)
