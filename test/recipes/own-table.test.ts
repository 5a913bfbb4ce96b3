import { runner } from 'once-per-key/run'
import { storeLaws } from 'once-per-key/testing'
import { Pool } from 'pg'
import { afterAll, describe, expect, test, vi } from 'vitest'
import { read } from '../docs/pages.js'
import { newDatabase } from '../support/postgres-server.js'

// The laws wait for real leases to lapse, each on keys of its own: together they wait no longer than one.
vi.setConfig({ maxConcurrency: 10, testTimeout: 60_000 })

const { url } = await newDatabase()
const owner = new Pool({ connectionString: url })
await owner.query(read('examples/recipes/stores/own-table.sql'))
vi.stubEnv('DATABASE_URL', url)
const { pool, store } = await import('../../examples/recipes/stores/own-table.js')
afterAll(async () => {
  await Promise.all([pool.end(), owner.end()])
  vi.unstubAllEnvs()
})

describe("the store over the reader's own table obeys the store laws", () => {
  storeLaws(test.concurrent, async () => ({ store }), {
    ...{ operable: true, listable: true, forgetful: true, stepped: true },
  })
})

test('counts by the clock of the database, whatever the clock of the process says', async () => {
  vi.useFakeTimers({ toFake: ['Date'], now: 0 })
  const once = runner({ store, name: 'clocks' })
  await once({ scope: 'acme', key: 'k', input: 1 }, async () => 'done')
  vi.useRealTimers()
  const { rows } = await owner.query(
    `SELECT expires_at > now() AS lives FROM idempotency_records WHERE key LIKE '%clocks%'`,
  )
  expect(rows).toEqual([{ lives: true }])
})

test('twenty steps of one run, begun at once, are all recorded: none of them loses too often', async () => {
  const events: string[] = []
  const once = runner({ store, name: 'steps', onEvent: ({ type }) => events.push(type) })
  const labels = Array.from({ length: 20 }, (_, i) => `step ${i}`)
  const result = await once({ scope: 'acme', key: 'k', input: 1 }, (run) =>
    Promise.all(labels.map((label) => run.step(label, () => label))),
  )
  expect(result).toEqual(labels)
  expect(events.filter((type) => type !== 'step_done')).toEqual(['claimed', 'completed'])
})
