import { expect, test } from 'vitest'
import { minifiedAndGzipped } from '../../verification/bench/sections/sizes.js'

test('the client is at most 2.6 kB in a bundle, minified and gzipped', async () => {
  const bytes = await minifiedAndGzipped('src/client/index.ts')
  expect(bytes).toBeLessThanOrEqual(2_600)
  expect(bytes).toBeGreaterThan(1_000) // it is all there
})
