import { expect, test } from 'vitest'
import { heardWarnings } from '../../support/warnings.js'
import { openPool, storeOn } from './open-store.js'

test('a store whose commands share the pool of the transactions warns once', async () => {
  const heard = heardWarnings()
  const [own, shared] = [openPool('postgres://localhost'), openPool('postgres://localhost')]
  storeOn({ pool: own, transactions: shared })
  await new Promise(setImmediate)
  expect(heard).toEqual([])
  for (let i = 0; i < 2; i++) storeOn({ pool: shared, transactions: shared })
  await new Promise(setImmediate)
  expect(heard).toMatchObject([{ code: 'ONCE_PER_KEY_SHARED_POOL', message: expect.stringContaining('same pool') }])
})
