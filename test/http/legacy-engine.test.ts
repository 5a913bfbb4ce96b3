import { createEngine, singleTenant } from 'once-per-key/core'
import { MemoryStore } from 'once-per-key/memory'
import { expect, test } from 'vitest'
import { answer, requestFacts } from '../support/request-facts.js'

// What 0.1 exported stays for one minor version, in its old shape.

test('createEngine answers by promises, with the run and its context in one', async () => {
  const engine = createEngine({ store: new MemoryStore(), scope: singleTenant })
  const decided = engine.decide(requestFacts())
  expect(decided).toBeInstanceOf(Promise)
  const decision = await decided
  if (decision.action !== 'execute') throw new Error(`expected a run; seen: ${decision.action}`)

  const { execution } = decision
  expect(execution).toMatchObject({ key: 'order-1', attempt: 1, previousOutcome: 'none', maxAnswerBytes: 1_048_576 })
  expect(execution.signal.aborted).toBe(false)
  expect(execution.deriveKey('bank transfer')).toBe(decision.run.context.deriveKey('bank transfer'))
  expect(execution.keepsBody(1, 'text/plain')).toBe(true)
  const settling = execution.settle(answer())
  expect(settling).toBeInstanceOf(Promise)
  expect(execution.settle(answer(500))).toBe(settling)
  expect(await settling).toEqual({ action: 'send' })
  expect(await execution.fail()).toBeUndefined()
  expect(await engine.decide(requestFacts())).toMatchObject({ action: 'replay', answer: { status: 201 } })
  await engine.idle()
})

test('its failures, events by claim, and operators are those of the new one', async () => {
  const engine = createEngine({ store: new MemoryStore(), scope: singleTenant })
  const name = { namespace: 'job', scope: 'acme', key: 'job-1' }
  const claim = () => engine.claim({ ...name, fingerprint: 'f' }, { request: undefined, isAbandoned: () => false })
  const first = await claim()
  if (first.action !== 'execute') throw new Error(`expected a run; seen: ${first.action}`)
  first.execution.mayHaveEffect()
  await first.execution.fail()
  const next = await claim()
  expect(next).toMatchObject({ action: 'execute', execution: { attempt: 2, previousOutcome: 'unknown' } })
  expect(await engine.inspect(name)).toMatchObject({ state: 'in-flight', attempt: 2 })
  expect(await engine.resolve({ ...name, attempt: 2 }, 'failed')).toMatchObject({ ok: false })
  if (next.action !== 'execute') return
  next.execution.willFailCertainly(true)
  await next.execution.settle(answer(500))
  expect(await engine.inspect(name)).toMatchObject({ state: 'failed', uncertain: true })
})
