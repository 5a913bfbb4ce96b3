import { afterAll, expect, test, vi } from 'vitest'
import { startRedis } from '../../test/support/redis-server.js'
import { buildProgram } from './built.js'
import type { Phase } from './measured.js'
import { measureCpuRatio } from './ratios.js'

vi.setConfig({ testTimeout: 300_000, hookTimeout: 120_000 })

const redis = await startRedis('--appendonly', 'no')
afterAll(() => redis.close())
const program = await buildProgram('cost/services')

// Twice what an idle machine shows: no benchmark, but what has become a multiple is found.
test.each<[service: string, phase: Phase, floor: string, most: number]>([
  ['express, memory', 'first', 'express', 3.2],
  ['express, memory', 'replay', 'express', 2.2],
  ['express, redis', 'first', 'express, redis by hand', 2.6],
])('%s: a %s request, beside one of %s, takes at most %d times its CPU', async (service, phase, floor, most) => {
  const { median } = await measureCpuRatio(program, { REDIS_PORT: `${redis.port}` }, [service, phase, floor])
  expect(median).toBeLessThan(most)
})
