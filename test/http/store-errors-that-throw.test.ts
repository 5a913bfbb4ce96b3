import { createRequestEngine } from 'once-per-key/http'
import { MemoryStore } from 'once-per-key/memory'
import { expect, test } from 'vitest'
import { requestFacts } from '../support/request-facts.js'

// A store's error that threw when it was looked at left its command without an end: the request was never answered.

function fault(): never {
  throw new Error('no')
}

test.each([
  ['with a code', Object.defineProperty(new Error('down'), 'code', { get: fault })],
  ['behind a proxy', new Proxy(new Error('down'), { getPrototypeOf: fault, get: fault })],
])('an error %s that throws when it is looked at is a store failure', async (_name, error) => {
  const store = new MemoryStore()
  store.begin = () => Promise.reject(error)
  const engine = createRequestEngine({ store, scope: () => 'acme' })
  expect(await engine.decide(requestFacts())).toMatchObject({
    action: 'reject',
    problem: { code: 'store_unavailable' },
  })
  await engine.idle()
})
