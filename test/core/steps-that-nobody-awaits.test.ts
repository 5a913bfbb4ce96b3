import { createOperationEngine, fingerprintOf, type Run } from 'once-per-key/core'
import { MemoryStore } from 'once-per-key/memory'
import { expect, test } from 'vitest'
import { gate } from '../support/gate.js'
import { heardWarnings } from '../support/warnings.js'

const ANSWER = { status: 200, statusMessage: '', headers: [], body: Buffer.from('{}') }

let keys = 0
async function started(): Promise<Run> {
  const engine = createOperationEngine({ store: new MemoryStore(), onEvent() {} })
  const claimed = await engine.claim({ namespace: 'n', scope: 's', key: `${++keys}`, fingerprint: fingerprintOf(1) })
  if (claimed.action !== 'execute') throw new Error('refused')
  return claimed.run
}

/** Completes, or fails, while steps of these labels are at the bank. */
async function endedMeanwhile(labels: readonly string[], end: (run: Run) => unknown): Promise<void> {
  const run = await started()
  const atBank = gate()
  const answered = gate()
  let begun = 0
  const steps = labels.map((label) =>
    run.context.step(label, async () => {
      if (++begun === labels.length) atBank.open()
      await answered.opened
    }),
  )
  await atBank.opened
  await end(run)
  answered.open()
  await Promise.all(steps)
  await new Promise(setImmediate) // Node tells of a warning on a later tick.
}

const complete = (run: Run) => run.complete(ANSWER)

test('a run that completes while a step is running warns once for its label', async () => {
  const warnings = heardWarnings()
  await endedMeanwhile(['charge'], complete)
  await endedMeanwhile(['charge'], complete)
  expect(warnings).toEqual([
    {
      code: 'ONCE_PER_KEY_STEP_NOT_AWAITED',
      message: expect.stringMatching(
        /^A run has completed before its step "charge": .* may never be called, .* await each/,
      ),
    },
  ])
})

test.each([
  ['that has ended', async (run: Run) => void (await run.context.step('ship', () => 1))],
  ['that has thrown', (run: Run) => run.context.step('ship', () => Promise.reject(new Error('away'))).catch(() => {})],
])('a step %s is none', async (_which, step) => {
  const warnings = heardWarnings()
  const run = await started()
  await step(run)
  await run.complete(ANSWER)
  await new Promise(setImmediate)
  expect(warnings).toEqual([])
})

test('nor does a failure warn, which waits for its steps before the key is free', async () => {
  const warnings = heardWarnings()
  await endedMeanwhile(['mail'], (run) => run.fail('perhaps', 'no_answer'))
  expect(warnings).toEqual([])
})

test('of labels that carry what a client sends, few are told', async () => {
  const warnings = heardWarnings()
  const labels = Array.from({ length: 30 }, (_, i) => `order ${i}`)
  await endedMeanwhile(labels, complete)
  expect(warnings.length).toBe(19) // Of 20, one was told above.
})
