import { afterAll, expect, test, vi } from 'vitest'
import { newDatabase } from '../../test/support/postgres-server.js'
import { startRedis } from '../../test/support/redis-server.js'
import { buildProgram } from './built.js'
import { Measured, type Phase } from './measured.js'

// Counts, not times: on a busy machine they only take longer.
vi.setConfig({ testTimeout: 300_000, hookTimeout: 120_000 })

const redis = await startRedis('--appendonly', 'no')
afterAll(() => redis.close())
const { url } = await newDatabase()
const measured = new Measured(await buildProgram('cost/services'), { REDIS_PORT: `${redis.port}`, POSTGRES_URL: url })

test('the measure sees an array of 512 numbers, which takes 4 kB', async () => {
  const { bytes } = await measured.costOver('express', 'express, with 512 words more', 'first')
  expect(bytes).toBeGreaterThan(4_050)
  expect(bytes).toBeLessThan(4_500)
})

test('a record among 100,000 in memory keeps at most 900 bytes', async () => {
  expect(await measured.kept('express, memory')).toBeLessThanOrEqual(900)
})

test.each<[service: string, phase: Phase, commands: number]>([
  ['express, redis', 'first', 2],
  ['express, redis', 'replay', 1],
  ['express, redis by hand', 'first', 2],
])('%s: a %s request is %d commands, which Redis reads one by one', async (service, phase, commands) => {
  expect(await measured.cost(service, phase)).toMatchObject({ commands, reads: commands })
})

test.each<[service: string, phase: Phase, trips: number]>([
  ['express, postgres', 'first', 2],
  ['express, postgres', 'replay', 1],
])('%s: a %s request is %d trips', async (service, phase, trips) => {
  expect((await measured.cost(service, phase)).trips).toBe(trips)
})
