import { createRequestEngine } from 'once-per-key/http'
import { runner } from 'once-per-key/run'
import { expect, test } from 'vitest'
import { outcomeOf, runOf } from '../support/engine-on-trial.js'
import { answer, requestFacts } from '../support/request-facts.js'
import { mustNotRun, OPERATION, runnerOnTrial } from './runner-on-trial.js'

test('two runners never meet, and two of one name are one', async () => {
  const { once, given } = runnerOnTrial()
  const other = runner({ ...given, name: 'others' })
  const same = runner(given)
  expect(await once(OPERATION, async () => 'mine')).toBe('mine')
  expect(await other(OPERATION, async () => 'theirs')).toBe('theirs')
  expect(await same(OPERATION, mustNotRun)).toBe('mine')
})

test('two scopes never meet', async () => {
  const { once } = runnerOnTrial()
  expect(await once(OPERATION, async () => 1)).toBe(1)
  expect(await once({ ...OPERATION, scope: 'globex' }, async () => 2)).toBe(2)
})

test('runners and requests never meet', async () => {
  const { once, given } = runnerOnTrial()
  await once(OPERATION, async () => 1)
  const engine = createRequestEngine({ store: given.store, scope: () => OPERATION.scope })
  const facts = requestFacts({ key: OPERATION.key })
  const run = runOf(await engine.decide(facts))
  await run.settle(answer())
  expect(outcomeOf(await engine.decide(facts))).toBe('replay')
  expect(await once(OPERATION, mustNotRun)).toBe(1)
})

test('a runner that is named like the webhooks’ namespace does not meet them', async () => {
  const { given } = runnerOnTrial()
  const once = runner({ ...given, name: 'webhook' })
  await once(OPERATION, async () => 1)
  const engine = createRequestEngine({ store: given.store, scope: () => '' })
  expect(await engine.inspect({ ...OPERATION_NAME, namespace: 'webhook' })).toBeNull()
  expect(await engine.inspect({ ...OPERATION_NAME, namespace: 'run.webhook' })).toMatchObject({ state: 'completed' })
})

const OPERATION_NAME = { scope: OPERATION.scope, key: OPERATION.key }

test('keys that are derived for another service differ by runner, too', async () => {
  const { once, given } = runnerOnTrial()
  const other = runner({ ...given, name: 'others' })
  const keys = await Promise.all([once, other].map((each) => each(OPERATION, ({ deriveKey }) => deriveKey('bank'))))
  expect(new Set(keys).size).toBe(2)
})
