import { expect, test, vi } from 'vitest'
import { inTime } from '../../support/in-time.js'
import { BINDINGS } from './on-bindings.js'
import { openPool, openStore, storeOn } from './open-store.js'

vi.setConfig({ testTimeout: 60_000, hookTimeout: 60_000 })

// Whoever gives a pool one connection, or lets each request take two, waits for what only the waiting would give back.

const { pool, query, url } = await openStore()
await query('CREATE TABLE effects (id text)')
const SETTINGS = { leaseMs: 4_000, maxRunMs: 4_000, storeTimeoutMs: 1_000 }
const express = (BINDINGS[0] as (typeof BINDINGS)[number])[1]

/** What `transaction` rejects with. */
async function rejected(
  store: ReturnType<typeof storeOn>,
  work: (tx: { query: unknown }) => unknown,
): Promise<unknown> {
  let error: unknown
  const { send, idle } = await express(store, SETTINGS, (context, answer) =>
    store
      .transaction(context, async (tx) => {
        await work(tx)
        answer(201, 'paid')
      })
      .catch((thrown) => {
        error = thrown
        throw thrown
      }),
  )
  expect(await inTime(send(), 20_000)).toMatchObject({ id: null })
  await inTime(idle(), 10_000)
  return error
}

test('a renewal that finds no connection beside its transaction is no lost lease: the store failed', async () => {
  const only = openPool(url, { max: 1 })
  const work = vi.fn()
  const message = expect.stringContaining('give the store its own')
  expect(await rejected(storeOn({ pool: only, transactions: only }), work)).toMatchObject({
    code: 'store_failed',
    message,
  })
  expect(work).not.toHaveBeenCalled()
})

test('work that waits for a second connection is told so at maxRunMs', async () => {
  const only = openPool(url, { max: 1 })
  const message = expect.stringContaining('use its `tx` alone')
  const error = await rejected(storeOn({ pool, transactions: only }), () =>
    only.query("INSERT INTO effects VALUES ('a')"),
  )
  expect(error).toMatchObject({ code: 'transaction_timed_out', message })
})
