import type { AddressInfo } from 'node:net'
import { connect, createServer } from 'node:net'
import { runner } from 'once-per-key/run'
import type { PoolClient } from 'pg'
import { expect, onTestFinished, test, vi } from 'vitest'
import { openPool, openStore, storeOn } from '../open-store.js'

vi.setConfig({ testTimeout: 60_000, hookTimeout: 60_000 })

test('a first request costs one round trip more than the unprotected work, and a replay one alone, without WAL', async () => {
  const { url, query, server } = await openStore()
  await query('CREATE TABLE effects (id text)')
  let trips = 0
  const counting = createServer((client) => {
    const upstream = connect(server.port, '127.0.0.1')
    client.on('data', (bytes) => {
      trips += 1 // One write of the client, which then waits.
      upstream.write(bytes)
    })
    upstream.on('data', (bytes) => client.write(bytes))
    for (const socket of [client, upstream])
      socket.on('error', () => {}).on('close', () => [client, upstream].map((s) => s.destroy()))
  }).listen(0, '127.0.0.1')
  await new Promise((resolve) => counting.once('listening', resolve))
  const through = url.replace(`:${server.port}`, `:${(counting.address() as AddressInfo).port}`)
  const [pool, application] = [openPool(through, { max: 1 }), openPool(through, { max: 1 })]
  onTestFinished(async () => {
    await Promise.all([pool.end(), application.end()])
    counting.close()
  })
  const store = storeOn({ pool, transactions: application })
  const once = runner({ store, name: 'payouts', effects: 'in-transaction' })
  const work = (tx: PoolClient) => tx.query("INSERT INTO effects VALUES ('e1')")
  const pay = (key: string) =>
    once({ scope: 'acme', key, input: null }, (context) =>
      store.transaction(context, async (tx) => (await work(tx)).rowCount),
    )
  const counted = async (run: () => Promise<unknown>) => {
    const before = trips
    await run()
    return trips - before
  }
  await pay('opens the connections')

  const unprotected = await counted(async () => {
    const tx = await application.connect()
    await tx.query('BEGIN')
    await work(tx)
    await tx.query('COMMIT')
    tx.release()
  })
  expect(unprotected).toBe(3)
  expect(await counted(() => pay('k'))).toBe(unprotected + 1)
  expect(await counted(() => pay('k'))).toBe(1)
  // Versions of the row: it was inserted, and never updated.
  expect(await query('SELECT cmax::text FROM once_per_key.records WHERE xmax <> 0')).toEqual([])

  const written = async () => {
    const at = async () => (await query('SELECT pg_current_wal_insert_lsn() - $1::pg_lsn AS n', ['0/0']))[0]?.n
    const before = await at()
    await pay('k')
    return Number(await at()) - Number(before)
  }
  // Something else may write meanwhile.
  const most = [await written(), await written(), await written(), await written(), await written()]
  expect(Math.min(...most)).toBe(0)
})
