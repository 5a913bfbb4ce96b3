import { afterAll, describe, expect, test, vi } from 'vitest'
import { newDatabase } from '../../test/support/postgres-server.js'
import { startRedis } from '../../test/support/redis-server.js'
import { built } from './built.js'
import { Measured, type Phase } from './measured.js'

// Counts, not times: on a busy machine they only take longer.
vi.setConfig({ testTimeout: 300_000, hookTimeout: 120_000 })

const redis = await startRedis('--appendonly', 'no')
afterAll(() => redis.close())
const { url } = await newDatabase()
const measured = new Measured(await built('services'), { REDIS_PORT: `${redis.port}`, POSTGRES_URL: url })

interface PerNode {
  readonly 24: number
  readonly 26: number
  /** V8 shares less between requests there, and an `AsyncLocalStorage` costs each promise an object. */
  readonly before: number
  /** Where it is another one than that of Node 20. */
  readonly 22?: number
}

const MAJOR = Number.parseInt(process.versions.node, 10)
function on(node: PerNode): number {
  if (MAJOR >= 24) return MAJOR >= 26 ? node[26] : node[24]
  return MAJOR >= 22 ? (node[22] ?? node.before) : node.before
}

const NONE: PerNode = { 24: 0, 26: 0, before: 0 }

test('the measure sees an array of 512 numbers, which takes 4 kB', async () => {
  const { bytes } = await measured.costOver('express', 'express, with 512 words more', 'first')
  expect(bytes).toBeGreaterThan(4_050)
  expect(bytes).toBeLessThan(4_500)
})

describe.each<[service: string, phase: Phase, floor: string, bytes: PerNode, promises: PerNode]>([
  ['express, memory', 'first', 'express', { 24: 5_400, 26: 5_600, before: 9_500 }, NONE],
  ['express, memory', 'replay', 'express', { 24: 2_500, 26: 2_500, 22: 2_200, before: 1_000 }, NONE],
  ['express, redis', 'first', 'express, redis by hand', { 24: 9_000, 26: 9_200, before: 13_000 }, NONE],
  ['express, redis', 'replay', 'express, redis by hand', { 24: 7_700, 26: 8_400, before: 10_000 }, NONE],
  ['express, memory', 'passing', 'express', { 24: 300, 26: 300, before: 300 }, NONE],
  ['fastify, memory', 'first', 'fastify', { 24: 10_600, 26: 10_200, before: 11_400 }, NONE],
  ['fastify, memory', 'replay', 'fastify', { 24: 7_800, 26: 7_800, 22: 7_800, before: 6_500 }, NONE],
  ['fastify, memory', 'passing', 'fastify', { 24: 1_200, 26: 1_200, before: 1_400 }, NONE],
  ['koa, memory', 'first', 'koa', { 24: 9_500, 26: 9_300, before: 9_900 }, { 24: 10, 26: 10, before: 10 }],
  ['koa, memory', 'replay', 'koa', { 24: 4_500, 26: 4_300, before: 3_900 }, NONE],
  ['koa, memory', 'passing', 'koa', { 24: 1_000, 26: 1_000, before: 1_000 }, { 24: 2, 26: 2, before: 2 }],
  ['fetch, memory', 'first', 'fetch', { 24: 31_500, 26: 29_000, before: 53_000 }, { 24: 28, 26: 28, before: 41 }],
  ['fetch, memory', 'replay', 'fetch', { 24: 19_500, 26: 18_000, before: 32_000 }, { 24: 8, 26: 8, before: 8 }],
  ['fetch, memory', 'passing', 'fetch', { 24: 2_900, 26: 2_700, before: 2_900 }, { 24: 2, 26: 2, before: 2 }],
  ['hono, memory', 'first', 'hono', { 24: 36_500, 26: 34_000, before: 59_000 }, { 24: 36, 26: 36, before: 49 }],
  ['hono, memory', 'replay', 'hono', { 24: 22_500, 26: 20_500, before: 35_000 }, { 24: 11, 26: 11, before: 11 }],
  ['hono, memory', 'passing', 'hono', { 24: 5_300, 26: 5_300, before: 5_300 }, { 24: 10, 26: 10, before: 10 }],
])('%s, a %s request beside %s', (service, phase, floor, mostBytes, madePromises) => {
  const most = on(madePromises)

  test(`makes at most ${most} promises more, and no timer`, async () => {
    const { promises, timers } = await measured.costOver(floor, service, phase)
    expect(promises).toBeLessThanOrEqual(most) // Some are made by Node's streams: fewer since 26.12.
    expect(timers).toBe(0)
  })

  test(`allocates at most ${on(mostBytes)} bytes more`, async () => {
    expect((await measured.costOver(floor, service, phase)).bytes).toBeLessThanOrEqual(on(mostBytes))
  })
})

test('a record in memory keeps at most 600 bytes', async () => {
  const most = on({ 24: 600, 26: 600, before: 610 })
  expect(await measured.kept('express, memory')).toBeLessThanOrEqual(most)
})

test.each<[service: string, phase: Phase, commands: number, promises: number]>([
  ['express, redis', 'first', 2, 4],
  ['express, redis', 'replay', 1, 2],
  ['express, redis by hand', 'first', 2, 4],
])('%s: a %s request is %d commands, which Redis reads one by one, and %d promises', async (...row) => {
  const [service, phase, commands, promises] = row
  expect(await measured.cost(service, phase)).toMatchObject({ commands, reads: commands, promises })
})

test.each<[service: string, phase: Phase, trips: number]>([
  ['express, postgres', 'first', 2],
  ['express, postgres', 'replay', 1],
])('%s: a %s request is %d trips', async (service, phase, trips) => {
  expect((await measured.cost(service, phase)).trips).toBe(trips)
})
