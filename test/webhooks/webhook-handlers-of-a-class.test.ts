import type { MerchantUpdatedEvent } from 'once-per-key/webhooks'
import { expect, test } from 'vitest'
import { BINDINGS } from '../support/bindings.js'
import { deliver, receive } from '../support/deliveries.js'

// Handlers that are methods of a class passed the check of the options, but only own members of `on` were called: every
// event was refused with 501, as if nobody handled it. And a handler that was found had lost its `this`.

const [express5] = BINDINGS as [(typeof BINDINGS)[0]]

class Handlers {
  readonly #seen: string[]

  constructor(seen: string[]) {
    this.#seen = seen
  }

  merchant_updated({ id }: MerchantUpdatedEvent): void {
    this.#seen.push(id)
  }
}

test('a method of a class handles its events, with its `this`', async () => {
  const seen: string[] = []
  const { port } = await receive(express5, { options: { on: new Handlers(seen) } })
  expect((await deliver(port)).status).toBe(200)
  expect(seen).toEqual(['evt_1'])
})

test('a handler beside others in an object has its `this`', async () => {
  const on = {
    merchant_updated(event: MerchantUpdatedEvent) {
      return this.mandate_setup_started(event)
    },
    mandate_setup_started(event: { readonly id: string }) {
      seen.push(event.id)
    },
  }
  const seen: string[] = []
  const { port } = await receive(express5, { options: { on } })
  expect((await deliver(port)).status).toBe(200)
  expect(seen).toEqual(['evt_1'])
})
