import { runner } from 'once-per-key/run'
import { beforeEach, expect, onTestFinished, test, vi } from 'vitest'
import { mustNotRun, OPERATION, rejection } from '../../run/runner-on-trial.js'
import { startFaultProxy } from '../../support/fault-proxy.js'
import { gate } from '../../support/gate.js'
import { openPool, openStore, storeOn } from './open-store.js'

vi.setConfig({ testTimeout: 60_000, hookTimeout: 60_000 })

const { server, pool, query, url } = await openStore()
await query('CREATE TABLE effects (id text)')
beforeEach(() => query('TRUNCATE once_per_key.records, effects'))

const TERMS = { name: 'payouts', storeTimeoutMs: 250, leaseMs: 1_000, onEvent: () => {} }
/** Of somebody whose database is there all the time. */
const operator = runner({ ...TERMS, store: storeOn({ pool }) })
const effects = () => query('SELECT id FROM effects')
const lapse = () => query('UPDATE once_per_key.records SET lease_until = 1')

async function proxied() {
  const proxy = await startFaultProxy(server.port)
  const connections = openPool(url.replace(`:${server.port}`, `:${proxy.port}`))
  onTestFinished(async () => {
    proxy.heal()
    await connections.end()
    await proxy.close()
  })
  return { proxy, connections }
}

test('a transaction that was rolled back is no success where an operator has completed its attempt meanwhile', async () => {
  const commands = await proxied()
  const application = await proxied()
  const store = storeOn({ pool: commands.connections, transactions: application.connections })
  const once = runner({ ...TERMS, store })
  const cutOff = gate()

  const first = rejection(
    once(OPERATION, (context) =>
      store.transaction(context, async (tx) => {
        await tx.query("INSERT INTO effects VALUES ('e1')")
        void application.proxy.dropRequest('COMMIT').then(() => {
          commands.proxy.cut()
          cutOff.open()
        })
        return { payout: 17 }
      }),
    ),
  )
  await cutOff.opened
  await lapse()
  expect(await operator.resolve({ ...OPERATION, attempt: 1 }, { completed: { payout: 'by hand' } })).toEqual({
    ok: true,
  })
  commands.proxy.heal()

  expect(await first).toMatchObject({ message: expect.stringMatching(/terminated|reset/) })
  expect(await effects()).toEqual([])
  expect(await operator(OPERATION, mustNotRun)).toEqual({ payout: 'by hand' })
})

test('nor is one that was completed by hand and rolled back, where the operator has left no answer', async () => {
  const application = openPool(url)
  onTestFinished(() => application.end())
  const store = storeOn({ pool, transactions: application })
  const once = runner({ ...TERMS, store })

  const first = once(OPERATION, async (context) => {
    const tx = await application.connect()
    await tx.query('BEGIN')
    await tx.query("INSERT INTO effects VALUES ('e1')")
    await store.completeIn<{ payout: number }>(tx, context, { payout: 17 })
    await tx.query('ROLLBACK')
    tx.release()
    await lapse()
    await operator.resolve({ ...OPERATION, attempt: 1 }, 'completed')
    return { payout: 17 }
  })

  expect(await rejection(first)).toMatchObject({ code: 'store_unavailable' })
  expect(await effects()).toEqual([])
})
