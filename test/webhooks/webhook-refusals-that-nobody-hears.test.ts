import { MemoryStore } from 'once-per-key/memory'
import type { WebhookReceiverOptions } from 'once-per-key/webhooks'
import { describe, expect, onTestFinished, test, vi } from 'vitest'
import { BINDINGS, listen, type Step } from '../support/bindings.js'
import { deliver, merchantUpdated, receive } from '../support/deliveries.js'
import { heardWarnings } from '../support/warnings.js'

// `onEvent` heard that a delivery was refused as `event_invalid`, and nothing of what was wrong, or with which event. Without a
// listener nothing was printed: a receiver that refused all of a sender's events lost them silently.

const [express5] = BINDINGS as [(typeof BINDINGS)[0]]
const WRONG = merchantUpdated({ payload: { hasApiKey: 'hush', apps: [{ hasApiKey: 'hush' }] } })

describe('a listener hears why a delivery was refused', () => {
  test('what is wrong with the event, its type, its id and its source; nothing of its payload', async () => {
    const { port, events } = await receive(express5)
    await deliver(port, { body: WRONG })
    expect(events).toEqual([
      {
        type: 'rejected',
        code: 'event_invalid',
        source: 'payments',
        eventId: 'evt_1',
        eventType: 'merchant_updated',
        issues: [
          { path: 'payload.hasApiKey', message: 'expected a boolean; seen: a string' },
          { path: 'payload.apps[0].hasApiKey', message: 'expected a boolean; seen: a string' },
        ],
      },
    ])
    expect(JSON.stringify(events)).not.toContain('hush')
  })

  test('the source that a function names, once the delivery is verified', async () => {
    const source = () => 'acme'
    const verified = await receive(express5, { options: { source } })
    await deliver(verified.port, { body: WRONG })
    expect(verified.events).toMatchObject([{ code: 'event_invalid', source: 'acme' }])
    const forged = await receive(express5, { options: { source, verify: () => false } })
    await deliver(forged.port, { body: WRONG })
    expect(forged.events).toEqual([{ type: 'rejected', code: 'signature_refused' }])
  })

  test('no more of an id or a type than fits into a line', async () => {
    const { port, events } = await receive(express5)
    const endless = 'x'.repeat(100_000)
    await deliver(port, { body: { ...WRONG, id: endless, type: endless, payload: 7 } })
    expect(events).toMatchObject([{ eventId: 'x'.repeat(255), eventType: 'x'.repeat(255) }])
  })
})

describe('without a listener', () => {
  /** A receiver of a process that has warned of nothing yet. */
  async function silentReceiver(options: Partial<WebhookReceiverOptions> = {}) {
    vi.resetModules()
    const { webhookReceiver } = await import('once-per-key/webhooks')
    const on = { merchant_updated: () => {} }
    const store = new MemoryStore()
    const receiver = webhookReceiver({ store, source: 'payments-that-nobody-shows', verify: false, on, ...options })
    const { port, close } = await listen(express5.listener([receiver as Step]))
    onTestFinished(close)
    return port
  }

  /** A process warns behind what it is doing. */
  const printed = () => new Promise((resolve) => setImmediate(resolve))

  test('the process warns once of each reason, with what is wrong, and shows neither id nor payload', async () => {
    const warnings = heardWarnings()
    const port = await silentReceiver()
    const id = 'evt_that_nobody_shows'
    for (let i = 0; i < 3; i++) {
      expect((await deliver(port, { body: { ...WRONG, id } })).status).toBe(400)
      expect((await deliver(port, { body: '{' })).status).toBe(400)
    }
    await deliver(port, { body: merchantUpdated({ id }) })
    for (let i = 0; i < 2; i++) {
      expect((await deliver(port, { body: merchantUpdated({ id, payload: { id: 'mer_2' } }) })).status).toBe(409)
    }
    await printed()
    const reasons = [
      'event_invalid, type "merchant_updated"; payload.hasApiKey: expected a boolean; seen: a string; ' +
        'payload.apps[0].hasApiKey: expected a boolean; seen: a string',
      'body_malformed',
      'mismatched',
    ]
    expect(warnings).toEqual(
      reasons.map((reason) => ({
        code: 'ONCE_PER_KEY_WEBHOOK_REFUSED',
        message: expect.stringContaining(`A webhook delivery was refused (${reason}).`),
      })),
    )
    expect(JSON.stringify(warnings)).not.toMatch(/hush|nobody.shows/)
  })

  test('names that the sender chose begin no line of their own, steer no terminal, and are cut', async () => {
    const warnings = heardWarnings()
    const parse = () => {
      throw Object.assign(new Error(), {
        issues: [{ path: ['payload', '\n\u001b]0;\u202e'], message: 'x'.repeat(1_000) }],
      })
    }
    await deliver(await silentReceiver({ parse } as never))
    await printed()
    expect(warnings).toHaveLength(1)
    expect(warnings[0]?.message).toContain('payload.\\u{a}\\u{1b}]0;\\u{202e}: xxx')
    expect(warnings[0]?.message.length).toBeLessThan(600)
  })

  test('of a refused signature it is said what to compare', async () => {
    const warnings = heardWarnings()
    const port = await silentReceiver({ verify: () => false })
    expect((await deliver(port)).status).toBe(401)
    await printed()
    expect(warnings.map(({ message }) => message)).toEqual([
      expect.stringMatching(/\(signature_refused\)\. Compare the secret.*raw bytes.*clock/),
    ])
  })

  test('a store that fails is warned of, as for the middleware', async () => {
    const warnings = heardWarnings()
    const store = new MemoryStore()
    const failing = Object.assign(store, { begin: () => Promise.reject(new Error('connection refused')) })
    const port = await silentReceiver({ store: failing })
    expect((await deliver(port)).status).toBe(503)
    await printed()
    expect(warnings.map(({ code }) => code)).toEqual(['ONCE_PER_KEY_STORE_FAILED'])
  })
})
