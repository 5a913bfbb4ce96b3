import { runner } from 'once-per-key/run'
import { expect, onTestFinished, test, vi } from 'vitest'
import { OPERATION, runnerOnTrial } from './runner-on-trial.js'

// An `encode` that is asynchronous is misuse, and the result is not kept; but its rejection, which nobody heard, ended the process.

test('an `encode` that rejects leaves no unhandled rejection', async () => {
  const unhandled = vi.fn()
  process.on('unhandledRejection', unhandled)
  onTestFinished(() => void process.off('unhandledRejection', unhandled))
  const { given, told } = runnerOnTrial()
  const encode = (() => Promise.reject(new Error('no'))) as unknown as typeof String
  const once = runner({ ...given, result: { encode, decode: String } })
  expect(await once(OPERATION, () => 'made')).toBe('made')
  await new Promise((resolve) => setImmediate(resolve))
  expect(told('result_not_kept')).toHaveLength(1)
  expect(unhandled).not.toHaveBeenCalled()
})

test('nor does an `isCertainFailure` that rejects: the outcome is unknown', async () => {
  const unhandled = vi.fn()
  process.on('unhandledRejection', unhandled)
  onTestFinished(() => void process.off('unhandledRejection', unhandled))
  const isCertainFailure = (() => Promise.reject(new Error('no'))) as unknown as () => boolean
  const { once, told } = runnerOnTrial({ isCertainFailure })
  await expect(once(OPERATION, () => Promise.reject(new Error('declined')))).rejects.toThrow('declined')
  await new Promise((resolve) => setImmediate(resolve))
  expect(told('option_failed')).toHaveLength(1)
  expect(told('failed')).toMatchObject([{ uncertain: true }])
  expect(unhandled).not.toHaveBeenCalled()
})
