import { MemoryStore } from 'once-per-key/memory'
import { runner } from 'once-per-key/run'
import { expect, test } from 'vitest'
import { mustNotRun, OPERATION, rejection, runnerOnTrial } from './runner-on-trial.js'

const NAME = { scope: OPERATION.scope, key: OPERATION.key }

/** A runner whose operation has an unknown outcome. */
async function unknown() {
  const trial = runnerOnTrial({ unknownOutcome: 'refuse' })
  await rejection(trial.once(OPERATION, () => Promise.reject(new Error('timed out'))))
  expect(await trial.once.inspect(NAME)).toMatchObject({ state: 'failed', attempt: 1, uncertain: true })
  return trial
}

test('an outcome that is resolved as failed frees the key', async () => {
  const { once, types } = await unknown()
  expect(await once.resolve({ ...NAME, attempt: 1 }, 'failed')).toEqual({ ok: true })
  expect(types().at(-1)).toBe('resolved')
  expect(await once(OPERATION, async ({ previousOutcome }) => previousOutcome)).toBe('failed')
})

test('an outcome that is resolved with a result gives it to repeats', async () => {
  const { once } = await unknown()
  expect(await once.resolve({ ...NAME, attempt: 1 }, { completed: { id: 'po_1' } })).toEqual({ ok: true })
  expect(await once(OPERATION, mustNotRun)).toEqual({ id: 'po_1' })
})

test('an outcome that is resolved as completed, without a result, never runs again', async () => {
  const { once } = await unknown()
  await once.resolve({ ...NAME, attempt: 1 }, 'completed')
  expect(await rejection(once(OPERATION, mustNotRun))).toMatchObject({ code: 'answer_not_kept' })
})

test('another attempt than the one that was looked at is not resolved', async () => {
  const { once } = await unknown()
  expect(await once.resolve({ ...NAME, attempt: 2 }, 'failed')).toMatchObject({ ok: false, record: { attempt: 1 } })
})

test('a record that is not there is null', async () => {
  expect(await runnerOnTrial().once.inspect(NAME)).toBeNull()
})

test('what is unknown is come across, of this runner alone', async () => {
  const { once, given } = runnerOnTrial({}, new MemoryStore())
  const other = runner({ ...given, name: 'others' })
  const fail = (): Promise<string> => Promise.reject(new Error('timed out'))
  await rejection(once(OPERATION, fail))
  await rejection(other({ ...OPERATION, key: 'job-2' }, fail))
  await once({ ...OPERATION, key: 'job-3' }, async () => 'known')
  const found = []
  for await (const { scope, key, record } of once.unknown()) found.push({ scope, key, attempt: record.attempt })
  expect(found).toEqual([{ ...NAME, attempt: 1 }])
})

test.each([
  ['no scope', { key: 'k' }],
  ['no key', { scope: 'acme' }],
  ['a namespace, which the runner has', { ...NAME, namespace: 'webhook' }],
  ['nothing', null],
])('to inspect %s is misuse', async (_name, name) => {
  const { once } = runnerOnTrial()
  expect(await rejection(once.inspect(name as typeof NAME))).toMatchObject({ code: 'arguments_invalid' })
})

test.each([
  ['without the attempt', NAME, 'failed', 'attempt'],
  ['as something else', { ...NAME, attempt: 1 }, 'done', 'none of'],
  ['as nothing', { ...NAME, attempt: 1 }, null, 'none of'],
  ['with a result that cannot be kept', { ...NAME, attempt: 1 }, { completed: Number.NaN }, 'NaN'],
])('to resolve %s is misuse, and changes nothing', async (_name, attempt, as, words) => {
  const { once } = await unknown()
  const error = await rejection(once.resolve(attempt as typeof NAME & { attempt: number }, as as 'failed'))
  expect(error.code).toBe('arguments_invalid')
  expect(error.message).toContain(words)
  expect(await once.inspect(NAME)).toMatchObject({ state: 'failed', uncertain: true })
})
