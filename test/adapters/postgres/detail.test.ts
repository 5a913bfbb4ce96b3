import { inspect } from 'node:util'
import { expect, test } from 'vitest'
import { claimOf } from '../claims.js'
import { openStore } from './open-store.js'

const { store, query } = await openStore()

test('an error of the store’s own statements does not show the beginning of a long key', async () => {
  await query(`ALTER TABLE once_per_key.records ADD CHECK (name NOT LIKE 'acme:%')`)
  const key = `acme:${'secret-'.repeat(30)}`
  const error = await Promise.resolve(store.begin(key, claimOf('t1'))).catch((failed: unknown) => failed)
  expect(error).toMatchObject({ cause: { code: '23514' } })
  expect(inspect(error, { depth: 10, showHidden: true })).not.toContain('secret-')
})
