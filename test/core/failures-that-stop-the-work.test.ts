import { expect, test } from 'vitest'
import { MemoryStore } from '../../adapters/memory/index.js'
import { createOperationEngine, type EngineEvent, fingerprintOf } from '../../src/core/index.js'

test('what the work says at once, when the failure stops it, counts for that failure', async () => {
  const events: EngineEvent[] = []
  const onEvent = (event: EngineEvent) => events.push(event)
  const engine = createOperationEngine({ store: new MemoryStore(), effects: 'declared', onEvent })
  const claimed = await engine.claim({ scope: 'acme', key: 'po_1', fingerprint: fingerprintOf({ amount: 1 }) })
  if (claimed.action !== 'execute') throw new Error('It is not executed')
  const { run } = claimed
  run.context.signal.addEventListener('abort', () => run.context.mayHaveEffect())

  expect(await run.fail('perhaps', 'no_answer')).toEqual({ action: 'send' })
  const failures = events.filter(({ type }) => type === 'failed')
  expect(failures).toMatchObject([{ uncertain: true, because: 'may_have_effect' }])
})
