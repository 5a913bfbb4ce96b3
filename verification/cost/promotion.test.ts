import { expect, test, vi } from 'vitest'
import { runNode } from '../../test/support/run-node.js'
import { built } from './built.js'

const REQUESTS = 6_000

// Processes that collect much; nothing is asserted about their time.
vi.setConfig({ testTimeout: 120_000 })

const program = await built('requests')

/** Bytes a request that outlived two collections of the young generation: V8 copies them, and must collect them later. */
async function promotedBy(variant: string): Promise<number> {
  const { stdout, stderr, exitCode } = await runNode(...['--trace-gc-nvp', program, variant, `${REQUESTS}`])
  expect([exitCode, stderr]).toEqual([0, ''])
  const counted = stdout.slice(stdout.indexOf('begin'), stdout.indexOf('end\n'))
  const each = [...counted.matchAll(/promoted(?:=|":)(\d+)/g)].map(([, bytes]) => Number(bytes))
  expect(each.length, 'collections').toBeGreaterThan(3)
  return each.reduce((sum, bytes) => sum + bytes, 0) / REQUESTS
}

/** Some bytes are promoted of any process, whatever it does. */
const NOISE_BYTES = 60

/** V8 of older ones promotes some 350 bytes a request, with closures or without: nothing is to be seen there. */
const isBlind = Number.parseInt(process.versions.node, 10) < 24

test.skipIf(isBlind)(
  'V8 promotes at most three times as many bytes for a protected request as for a bare one',
  async () => {
    const most = 3 * (await promotedBy('bare')) + NOISE_BYTES
    for (const variant of ['at-once', 'by-promises']) expect(await promotedBy(variant), variant).toBeLessThan(most)
  },
)

test.skipIf(isBlind)('two closures of a request’s own are seen', async () => {
  const most = 3 * (await promotedBy('bare')) + NOISE_BYTES
  expect(await promotedBy('closures')).toBeGreaterThan(2 * most)
})
