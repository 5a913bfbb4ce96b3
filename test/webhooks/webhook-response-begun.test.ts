import type { ServerResponse } from 'node:http'
import { MemoryStore } from 'once-per-key/memory'
import { type WebhookReceiverEvent, webhookReceiver } from 'once-per-key/webhooks'
import { expect, onTestFinished, test } from 'vitest'
import { BINDINGS, listen, type Step } from '../support/bindings.js'
import { begin, receive } from '../support/deliveries.js'
import { failingStore } from '../support/failing-store.js'

// Where something before the receiver had begun the response and left it open, the event was handled, but its sender never
// got an answer: the response stayed open until the sender gave up, and so with each repeat. Nobody heard of it.

const beginResponse: Step = (_req, res: ServerResponse, next) => {
  res.flushHeaders()
  next()
}

test.each(BINDINGS)('on $name it is misuse, passed to next: nothing runs, nothing is stored', async (binding) => {
  const store = failingStore()
  const { port, handled, errors } = await receive(binding, { options: { store }, before: [beginResponse] })
  await begin(port).reply()
  expect(errors).toEqual([expect.objectContaining({ code: 'response_begun' })])
  expect({ handled, sent: store.sent }).toEqual({ handled: [], sent: [] })
})

test('without next the connection is cut, which acknowledges nothing', async () => {
  const events: WebhookReceiverEvent[] = []
  const receiver = webhookReceiver({
    store: new MemoryStore(),
    source: 'payments',
    verify: false,
    on: { merchant_updated: () => {} },
    onEvent: (event) => events.push(event),
  })
  const running = await listen((req, res) => {
    res.flushHeaders()
    receiver(req, res)
  })
  onTestFinished(running.close)
  const connection = begin(running.port)
  await connection.closed
  expect(connection.received().toString()).not.toContain('0\r\n\r\n')
  expect(events).toEqual([{ type: 'receiver_failed', error: expect.objectContaining({ code: 'response_begun' }) }])
})
