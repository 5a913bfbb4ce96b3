import { createRequestEngine, type RequestRun } from 'once-per-key/http'
import { MemoryStore } from 'once-per-key/memory'
import { expect, test } from 'vitest'
import { answer, type Request, requestFacts } from '../support/request-facts.js'

const scope = () => 'acme'

function executed(decision: unknown): RequestRun {
  expect(decision).toMatchObject({ action: 'execute' })
  return (decision as { run: RequestRun }).run
}

test('where store and options answer at once, so does a run: claimed, completed, replayed, refused and failed', () => {
  const engine = createRequestEngine<Request>({ store: new MemoryStore(), scope })
  const run = executed(engine.decide(requestFacts()))
  expect(engine.decide(requestFacts())).toMatchObject({ action: 'reject', problem: { code: 'in_flight' } })
  expect(run.settle(answer())).toEqual({ action: 'send' })
  expect(engine.decide(requestFacts())).toMatchObject({ action: 'replay', answer: { status: 201 } })
  expect(executed(engine.decide(requestFacts({ key: 'order-2' }))).fail()).toEqual({ action: 'send' })
})

test('an option that answers by a promise is waited for', async () => {
  const engine = createRequestEngine<Request>({ store: new MemoryStore(), scope: async () => 'acme' })
  const decision = engine.decide(requestFacts())
  expect(decision).toBeInstanceOf(Promise)
  executed(await decision)
})

test('a claim that the store throws at is refused at once, with an event; its handler does not run', () => {
  const store = new MemoryStore({ maxEntries: 1 })
  const events: string[] = []
  const engine = createRequestEngine<Request>({ store, scope, onEvent: ({ type }) => void events.push(type) })
  executed(engine.decide(requestFacts()))
  const decision = engine.decide(requestFacts({ key: 'order-2' }))
  expect(decision).toMatchObject({ action: 'reject', problem: { code: 'store_unavailable', status: 503 } })
  expect(events).toEqual(['claimed', 'store_failed'])
})

test('a completion that the store throws at is sent all the same, and tried again until it is stored', async () => {
  const store = new MemoryStore()
  const events: string[] = []
  const engine = createRequestEngine<Request>({ store, scope, onEvent: ({ type }) => void events.push(type) })
  const run = executed(engine.decide(requestFacts()))
  const complete = store.complete
  store.complete = () => {
    store.complete = complete
    throw new Error('down')
  }
  expect(run.settle(answer())).toEqual({ action: 'send' })
  await engine.idle()
  expect(events).toEqual(['claimed', 'store_failed', 'completion_pending', 'completed'])
  expect(engine.decide(requestFacts())).toMatchObject({ action: 'replay' })
})
