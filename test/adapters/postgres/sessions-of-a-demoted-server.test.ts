import type { Pool } from 'pg'
import { expect, onTestFinished, test, vi } from 'vitest'
import { payoutServers } from '../../support/payout-servers.js'
import { claimOf } from '../claims.js'
import { openPool, openStore, storeOn } from './open-store.js'

// A server that is demoted in a planned failover keeps its sessions, which are read-only from then on. A pool in use kept them too, so
// each request got 503 long after the new primary had taken over.

const { url } = await openStore()

/** A pool whose only session is read-only, and the next one is not. */
async function demoted(): Promise<Pool> {
  const only = openPool(url, { max: 1 })
  await only.query('SET default_transaction_read_only = on')
  vi.useFakeTimers({ toFake: ['performance'] })
  onTestFinished(async () => {
    vi.useRealTimers()
    await only.end()
  })
  return only
}

/** When the errors come that are expected of the first session. */
const PAUSES_MS = [0, 999, 1]

test('a session that has been read-only for a second is closed: the next one may reach the new primary', async () => {
  const claiming = storeOn({ pool: await demoted() })
  for (const pauseMs of PAUSES_MS) {
    vi.advanceTimersByTime(pauseMs)
    await expect(claiming.begin('k', claimOf('t1'))).rejects.toMatchObject({ code: 'read_only' })
  }
  expect(await claiming.begin('k', claimOf('t1'))).toMatchObject({ acquired: true })
})

test('so is one of the pool of the application, behind a transaction of the store', async () => {
  const transactions = await demoted()
  const paying = storeOn({ pool: openedBeside(), transactions })
  const { serve, errors, close } = payoutServers({ store: paying, effects: 'in-transaction' })
  onTestFinished(close)
  const post = await serve((_req, res, context) =>
    paying.transaction(context, () => void res.status(201).end(), { allowEmpty: true }),
  )
  for (const pauseMs of PAUSES_MS) {
    vi.advanceTimersByTime(pauseMs)
    expect((await post()).status).toBe(500)
  }
  expect(errors).toMatchObject(PAUSES_MS.map(() => ({ code: 'read_only' })))
  expect((await post()).status).toBe(201)
})

function openedBeside(): Pool {
  const pool = openPool(url, { max: 2 })
  onTestFinished(() => pool.end())
  return pool
}
