import { afterAll, describe, expect, test, vi } from 'vitest'
import { QUICKLY_FILLED, STEP_BLOCKS, type Touched, touchedAmong } from '../../support/postgres-growth.js'
import { startPostgres } from '../../support/postgres-server.js'

vi.setConfig({ testTimeout: 120_000, hookTimeout: 60_000 })

const server = await startPostgres(QUICKLY_FILLED)
afterAll(() => server.close())

const [few, many] = [await touchedAmong(1_000, server), await touchedAmong(1_000_000, server)]
const isStep = (name: string) => name.startsWith('a step')

describe('in a table of a million records', () => {
  test.each([...many].filter(([name]) => !isStep(name)))(
    '%s finds its record by the index alone',
    (name, { scans, blocks }) => {
      expect(scans).not.toEqual([])
      for (const scan of scans) expect(scan).toMatch(/^(Index Scan using|Conflict on) records_pkey$/)
      // The index is one level deeper, and a claim goes through it three times.
      expect(blocks).toBeLessThanOrEqual(2 * blocksOf(few, name))
    },
  )

  test('a step of list reads one stretch of the table, and each block once', () => {
    const { scans, blocks } = many.get('a step of list') as Touched
    expect(scans).toEqual(['Tid Range Scan'])
    expect(blocks).toBe(STEP_BLOCKS)
  })

  test('a step of sweep touches as much for each block of its stretch as in a table of a thousand', () => {
    const { scans, blocks } = many.get('a step of sweep') as Touched
    expect(scans).toEqual(['Tid Range Scan', 'Tid Scan'])
    const perBlock = blocksOf(few, 'a step of sweep') / blocksOf(few, 'a step of list')
    expect(blocks / STEP_BLOCKS).toBeLessThan(1.5 * perBlock)
  })
})

function blocksOf(touched: ReadonlyMap<string, Touched>, name: string): number {
  return touched.get(name)?.blocks as number
}
