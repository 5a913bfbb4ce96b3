import { afterAll, expect, test, vi } from 'vitest'
import { startPostgres } from '../../test/support/postgres-server.js'
import { type TransactionCost, transactionCost, type Way } from './transaction-costs.js'

vi.setConfig({ testTimeout: 120_000, hookTimeout: 120_000 })

// One that syncs its log, or there are no flushes to count; and that writes nothing of its own meanwhile.
const server = await startPostgres({ fsync: 'on', autovacuum: 'off', checkpoint_timeout: '1h' })
afterAll(() => server.close())
const known = new Map<string, Promise<TransactionCost>>()

function cost(way: Way, phase: 'first' | 'replay' = 'first'): Promise<TransactionCost> {
  const name = `${known.size}_${phase}`
  const measured =
    known.get(`${way} ${phase}`) ??
    server.createDatabase(`cost_${name}`).then((url) => transactionCost(url, way, phase))
  known.set(`${way} ${phase}`, measured)
  return measured
}

const WAYS = ['in-transaction', 'in-transaction, named statements'] as const

test.each(WAYS)(
  '%s, a first request: one trip more than unprotected, one flush, one row and no update',
  async (way) => {
    const unprotected = await cost('unprotected')
    expect(unprotected).toMatchObject({ trips: 3, flushes: 1 })
    expect(await cost(way)).toMatchObject({ trips: unprotected.trips + 1, flushes: 1, inserted: 1, updated: 0 })
  },
)

test.each(WAYS)('%s, a first request: at most 1.2 times the log of a table by hand', async (way) => {
  const { walBytes, ...byHand } = await cost('by hand')
  expect(byHand).toEqual({ trips: 5, flushes: 1, inserted: 1, updated: 1 })
  expect((await cost(way)).walBytes).toBeLessThanOrEqual(1.2 * walBytes)
})

test.each([...WAYS, 'leased'] as const)('%s, a replay: one trip, and nothing is written', async (way) => {
  expect(await cost(way, 'replay')).toEqual({ trips: 1, flushes: 0, inserted: 0, updated: 0, walBytes: 0 })
})

test('leased, a first request: a claim and its completion, each with a flush of its own', async () => {
  expect(await cost('leased')).toMatchObject({ flushes: 2, inserted: 1, updated: 1 })
})
