import { expect, test, vi } from 'vitest'
import { recordSizes } from '../../../verification/bench/record-sizes.js'
import { startRedis } from '../../support/redis-server.js'

// Real servers and many connections, on a machine that may be busy.
vi.setConfig({ testTimeout: 30_000 })

test('a completed record with an answer of 1 KiB takes at most 1.75 KiB, and less than in any other form tried', async () => {
  const server = await startRedis()
  const { 'as the store keeps it': chosen, ...others } = await recordSizes(server.port)
  await server.close()
  expect(chosen).toBeGreaterThan(1_024)
  expect(chosen).toBeLessThanOrEqual(1_792)
  for (const [how, bytes] of Object.entries(others)) expect(chosen, how).toBeLessThanOrEqual(bytes)
})
