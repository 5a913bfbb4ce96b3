import type { PoolConnection } from 'mysql2/promise'
import { describe, expect, onTestFinished, test, vi } from 'vitest'
import { ANSWER, claimOf, ownOf } from '../claims.js'
import { openPool, storeOn } from './open-store.js'
import { onDatabase } from './served.js'

vi.setConfig({ testTimeout: 60_000, hookTimeout: 60_000 })

const on = await onDatabase()
const { insert, effects, errors, url, pool, query } = on
on.clears()

/** On sessions of its own, which keep their limit. */
function freshStore() {
  const application = openPool(url)
  onTestFinished(() => application.end())
  return storeOn({ pool, transactions: application })
}

const LEFT_OUT = { code: 'database_unsuitable', message: expect.stringContaining('sql_select_limit') }

describe.each(['assumed', 'in-transaction'] as const)('a session that leaves rows out (effects: %s)', (kind) => {
  test.each([0, 1])('commits nothing, and is named: sql_select_limit = %i', async (limit) => {
    const store = freshStore()
    const post = await on.serve(
      async (_req, res, context) => {
        await store.transaction(context, async (tx) => {
          await insert(tx as unknown as PoolConnection)
          await tx.query(`SET sql_select_limit = ${limit}`)
          res.status(201).end()
        })
      },
      { effects: kind, store },
    )
    expect(await post()).toMatchObject({ status: 500 })
    expect(errors).toMatchObject([LEFT_OUT])
    expect(await effects()).toEqual([])
  })

  test('and asks for no count commits its record as every other one', async () => {
    const store = freshStore()
    const post = await on.serve(
      async (_req, res, context) => {
        await store.transaction(
          context,
          async (tx) => {
            await insert(tx as unknown as PoolConnection)
            await tx.query('SET sql_select_limit = 0')
            res.status(201).end()
          },
          { allowEmpty: true },
        )
      },
      { effects: kind, store },
    )
    expect(await post()).toMatchObject({ status: 201, replayed: false })
    expect(await post()).toMatchObject({ status: 201, replayed: true })
    expect(await effects()).toEqual(['e1'])
  })
})

test('a connection of the store that leaves rows out reads its records all the same', async () => {
  const shared = openPool(url, { connectionLimit: 1 })
  onTestFinished(() => shared.end())
  const onShared = storeOn({ pool: shared })
  await onShared.begin('k', claimOf('t'))
  const connection = await shared.getConnection()
  await connection.query('SET sql_select_limit = 0')
  connection.release()
  expect(await onShared.complete('k', { ...ownOf('t'), answer: ANSWER })).toEqual({ ok: true })
  expect(await onShared.begin('k', claimOf('t2'))).toMatchObject({ acquired: false, record: { state: 'completed' } })
  await query('UPDATE once_per_key_records SET expires_at = 1')
  expect(await onShared.sweep()).toBe(1)
  expect(await storeOn({ pool }).inspect('k')).toBeNull()
})
