import { MemoryStore } from 'once-per-key/memory'
import { webhookReceiver } from 'once-per-key/receiver'
import { expect, test } from 'vitest'
import { failingStore } from '../support/failing-store.js'

const DAY_MS = 24 * 3_600_000

function start(store = new MemoryStore()) {
  let runs = 0
  const receiver = webhookReceiver({
    store,
    source: 'shop',
    verify: false,
    parse: (raw) => {
      const { id, created } = JSON.parse(raw.toString())
      return { id, type: 'paid', payload: null, created: new Date(created) }
    },
    on: { paid: () => void runs++ },
    firstSent: ({ created }) => created,
    onEvent: () => {},
  })
  async function deliver(id: string, created: unknown) {
    const body = JSON.stringify({ id, created })
    const response = await receiver.fetch(new Request('http://shop.test/hooks', { method: 'POST', body }))
    return [response.status, response.ok ? '' : ((await response.json()) as { code: string }).code]
  }
  return { deliver, runs: () => runs }
}

test('an event whose earlier delivery may be forgotten is not handled', async () => {
  const { deliver, runs } = start()
  expect(await deliver('evt_1', Date.now() - 31 * DAY_MS)).toEqual([409, 'key_expired'])
  expect(await deliver('evt_2', Date.now() - 30 * DAY_MS)).toEqual([200, ''])
  expect(runs()).toBe(1)
})

test('while its record lives, a late delivery of a handled event is acknowledged', async () => {
  const { deliver, runs } = start()
  await deliver('evt_1', Date.now())
  expect(await deliver('evt_1', Date.now() - 40 * DAY_MS)).toEqual([200, ''])
  expect(runs()).toBe(1)
})

test.each([
  { name: 'is no date', created: 'yesterday' },
  { name: 'is in the future', created: Date.now() + DAY_MS },
])('an event whose time $name is invalid', async ({ created }) => {
  const { deliver, runs } = start()
  expect(await deliver('evt_1', created)).toEqual([400, 'event_invalid'])
  expect(runs()).toBe(0)
})

test('a store without `inspect` is an option mistake', () => {
  expect(() => start(failingStore() as never)).toThrow(/firstSent: it needs a store with `inspect`/)
})
