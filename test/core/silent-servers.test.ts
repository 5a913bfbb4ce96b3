import type { IdempotencyEvent, IdempotencyOptions, Store } from 'once-per-key'
import { createRequestEngine } from 'once-per-key/http'
import { MemoryStore } from 'once-per-key/memory'
import { sealed } from 'once-per-key/sealed'
import { expect, test, vi } from 'vitest'
import { failingStore } from '../support/failing-store.js'
import { failBefore } from '../support/faults.js'
import { answer, requestFacts } from '../support/request-facts.js'
import { heardWarnings } from '../support/warnings.js'

const KEY = 'order-that-nobody-shows'

/** An engine of a process that has warned of nothing yet. */
async function silentEngine(options: Partial<IdempotencyOptions> & { readonly store: Store }) {
  vi.resetModules()
  const { createRequestEngine } = await import('once-per-key/http')
  const engine = createRequestEngine({ scope: () => 'acme-that-nobody-shows', ...options })
  const send = () => engine.decide(requestFacts({ key: KEY }))
  return { engine, send }
}

/** A process warns behind what it is doing. */
const printed = () => new Promise((resolve) => setImmediate(resolve))

test('a server whose store fails, and that has no listener, says so once', async () => {
  const warnings = heardWarnings()
  const store = failingStore()
  store.always('begin', failBefore(Object.assign(new Error('connection refused'), { code: 'ECONNREFUSED' })))
  const { engine, send } = await silentEngine({ store })
  for (let i = 0; i < 3; i++) expect(await send()).toMatchObject({ problem: { code: 'store_unavailable' } })
  await engine.idle()
  await printed()
  expect(warnings).toEqual([
    {
      code: 'ONCE_PER_KEY_STORE_FAILED',
      message: expect.stringMatching(/^The store failed at `begin` \(ECONNREFUSED: connection refused\)\./),
    },
  ])
  expect(JSON.stringify(warnings)).not.toContain('nobody-shows')
})

test('each of its failures is told once by its code, twenty at the most: another one does not stay silent', async () => {
  const warnings = heardWarnings()
  const store = failingStore()
  const { send } = await silentEngine({ store })
  const codes = Array.from({ length: 25 }, (_, i) => `E${i}`)
  for (const code of [...codes, ...codes]) {
    store.always('begin', failBefore(Object.assign(new Error('It failed.'), { code })))
    await send()
  }
  await printed()
  expect(warnings.map(({ message }) => /\((E\d+):/.exec(message)?.[1])).toEqual(codes.slice(0, 20))
})

test.each([
  { code: 'ECONNREFUSED', advised: true },
  { code: 'connection_lost', advised: true },
  { code: 'store_full', advised: false },
  { code: 'seal_key_missing', advised: false },
  { code: 'schema_missing', advised: false },
])('where the store fails with $code, to look at its server is advised: $advised', async ({ code, advised }) => {
  const warnings = heardWarnings()
  const store = failingStore()
  store.always('begin', failBefore(Object.assign(new Error('It failed.'), { code })))
  const { send } = await silentEngine({ store })
  await send()
  await printed()
  expect(warnings[0]?.message.includes('Check that its server is reachable')).toBe(advised)
  expect(warnings[0]?.message).toContain('errors.md#store_unavailable')
})

test('where a sealed answer is read without its keys, to open it is advised, and not to look at the server', async () => {
  const warnings = heardWarnings()
  const inner = new MemoryStore()
  const keys = [Buffer.alloc(32, 1)] as const
  const sealing = createRequestEngine({
    store: sealed(inner, { keys }),
    scope: () => 'acme-that-nobody-shows',
    onEvent() {},
  })
  const decision = await sealing.decide(requestFacts({ key: KEY }))
  if (decision.action === 'execute') await decision.run.settle(answer())
  const { send } = await silentEngine({ store: inner })
  expect(await send()).toMatchObject({ problem: { code: 'store_unavailable' } })
  await printed()
  expect(warnings).toHaveLength(1)
  expect(warnings[0]?.message).toContain('opened by `sealed(store, { keys })`')
  expect(warnings[0]?.message).not.toContain('Check that its server')
})

test('a server that runs handlers unprotected, and has no listener, says so once', async () => {
  const warnings = heardWarnings()
  const store = failingStore()
  store.always('begin', failBefore())
  const { send } = await silentEngine({ store, storeFailure: 'runUnprotected' })
  for (let i = 0; i < 2; i++) expect(await send()).toMatchObject({ action: 'execute' })
  await printed()
  expect(warnings.map(({ code }) => code).sort()).toEqual(['ONCE_PER_KEY_STORE_FAILED', 'ONCE_PER_KEY_UNPROTECTED'])
})

test('a server whose Redis may drop records, and that has no listener, says so once', async () => {
  const warnings = heardWarnings()
  const advice = 'Set maxmemory-policy noeviction.'
  const observed: Store = {
    ...failingStore(),
    observe(tell) {
      for (const policy of ['allkeys-lru', null]) tell({ type: 'eviction_policy', policy, advice })
    },
  }
  await silentEngine({ store: observed })
  await printed()
  expect(warnings).toEqual([
    {
      code: 'ONCE_PER_KEY_EVICTION_POLICY',
      message: expect.stringMatching(/allkeys-lru\. Set maxmemory-policy noeviction\./),
    },
  ])
})

test('a server that has a listener prints nothing', async () => {
  const warnings = heardWarnings()
  const events: IdempotencyEvent[] = []
  const store = failingStore()
  store.next('begin', failBefore())
  const { send } = await silentEngine({ store, onEvent: (event) => void events.push(event) })
  await send()
  await printed()
  expect(events).toMatchObject([{ type: 'store_failed' }])
  expect(warnings).toEqual([])
})

test('a server that forgets what may have had an effect, and has no listener, says so once', async () => {
  const warnings = heardWarnings()
  const observed: Store = {
    ...failingStore(),
    observe(tell) {
      for (const state of ['completed', 'failed', 'failed'] as const) tell({ type: 'evicted', state })
    },
  }
  await silentEngine({ store: observed })
  await printed()
  expect(warnings).toEqual([
    { code: 'ONCE_PER_KEY_UNKNOWN_OUTCOME_EVICTED', message: expect.stringMatching(/Raise maxUncertainBytes/) },
  ])
})
