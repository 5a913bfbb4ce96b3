import { afterAll, expect, test, vi } from 'vitest'
import { startGenerator } from '../bench/generator.js'
import { measureReplay } from '../bench/scale/bodies.js'
import { timeFingerprints } from '../bench/scale/fingerprints.js'
import type { Ground } from '../bench/scale/slices.js'
import { ratioOf } from '../bench/statistics.js'
import { buildProgram } from './built.js'

vi.setConfig({ testTimeout: 300_000, hookTimeout: 120_000 })

const MIB = 2 ** 20

// Bars with room for a busy machine: no benchmark, but what has become a multiple is found.
test.each([1_024, 65_536, MIB])('a fingerprint of %d bytes of JSON takes at most 3 times their JSON.parse', (bytes) => {
  const { fingerprint, parse } = timeFingerprints({ bytes, rounds: 15 })
  expect(ratioOf(fingerprint, parse).median).toBeLessThan(3)
})

test('a replay of 1 MiB from memory takes at most 1.6 times the CPU of sending a buffer', async () => {
  const service = await buildProgram('bench/service')
  const generator = startGenerator(await buildProgram('bench/generator'))
  afterAll(() => generator.end())
  const ground: Ground = { generator, rounds: 15, sliceSeconds: 0.5, warmUpSeconds: 3, tell: () => {} }
  const { median } = await measureReplay(ground, MIB, { redisPort: 0 }, service)
  expect(median).toBeLessThan(1.6)
})
