import { afterAll, beforeAll, expect, test, vi } from 'vitest'
import { runNode } from '../../support/run-node.js'
import { type TranspiledPackage, transpiledPackage } from '../../support/transpiled-package.js'

// Time to fill a store; nothing is asserted about it.
vi.setConfig({ testTimeout: 60_000 })

/** How many begins are sent to a store of 100,000 records. */
const BEGINS = 100
/** How often a piece of code may run meanwhile: far from the 100,000 times of a single scan. */
const FEW = BEGINS * 20

let files: TranspiledPackage
beforeAll(async () => {
  files = await transpiledPackage()
})
afterAll(() => files.remove())

/** Makes records; V8 then counts how often each block of the store's code runs while there are begins. */
const COUNTING = `
import { Session } from 'node:inspector/promises'
import { MemoryStore } from 'once-per-key/memory'

export const RECORDS = 100_000
export const BEGINS = ${BEGINS}
export const RETENTION_MS = 86_400_000
export const clock = { ms: 1_000 }
const session = new Session()
session.connect()
await session.post('Profiler.enable')

export function make(options) {
  return new MemoryStore({ maxEntries: RECORDS, maxBytes: 2 ** 40, maxScopeShare: 1, now: () => clock.ms, ...options })
}

export function attempt(store, key, end = 'never', retentionMs = RETENTION_MS) {
  const own = { token: key, scope: 'acme', fingerprint: 'f', attempt: 1, uncertain: false, retentionMs }
  try {
    const { acquired } = store.begin(key, { ...own, leaseMs: 30_000, unknownOutcome: 'rerun' })
    if (end === 'complete') store.complete(key, { ...own, answer: { status: 200, statusMessage: '', headers: [], body: null } })
    if (end === 'fail') store.release(key, { ...own, uncertain: true, failedMs: 1 })
    if (end === 'refuse') store.release(key, { ...own, failedMs: RETENTION_MS })
    return acquired ? 'acquired' : 'refused'
  } catch (error) {
    return error.code
  }
}

export async function counted(act) {
  await session.post('Profiler.startPreciseCoverage', { callCount: true, detailed: true })
  const outcomes = Array.from({ length: BEGINS }, (_, i) => act(i))
  const { result } = await session.post('Profiler.takePreciseCoverage')
  const ranges = result
    .filter(({ url }) => /adapters.memory|lru-cache/.test(url))
    .flatMap(({ functions }) => functions.flatMap(({ ranges }) => ranges))
  console.log(JSON.stringify({ outcomes: [...new Set(outcomes)], most: Math.max(...ranges.map(({ count }) => count)) }))
}
`

async function counted(script: string): Promise<{ outcomes: string[]; most: number }> {
  await files.write('counting.mjs', COUNTING)
  const imports = `import { attempt, BEGINS, clock, counted, make, RECORDS, RETENTION_MS } from './counting.mjs'\n`
  const { exitCode, stdout, stderr } = await runNode(await files.write('scans.mjs', imports + script))
  expect(stderr).toBe('')
  expect(exitCode).toBe(0)
  return JSON.parse(stdout)
}

test.each([
  [
    'a store with room looks at no other record',
    'acquired',
    `const store = make({ maxEntries: 2 * RECORDS })
    for (let i = 0; i < RECORDS; i++) attempt(store, 'completed ' + i, 'complete')
    await counted((i) => attempt(store, 'new ' + i))`,
  ],
  [
    'a full store refuses without a scan',
    'store_full',
    `const store = make()
    for (let i = 0; i < RECORDS; i++) attempt(store, 'completed ' + i, 'complete')
    await counted((i) => attempt(store, 'new ' + i))`,
  ],
  [
    'a full store finds what expired behind older records that are kept longer without a scan',
    'acquired',
    `const store = make()
    for (let i = 0; i < RECORDS - BEGINS; i++) attempt(store, 'lasting ' + i, 'complete')
    for (let i = 0; i < BEGINS; i++) {
      attempt(store, 'short ' + i, 'never', RETENTION_MS / 2)
      clock.ms++
    }
    clock.ms += RETENTION_MS / 2 - BEGINS
    await counted((i) => {
      const outcome = attempt(store, 'new ' + i)
      clock.ms++
      return outcome
    })`,
  ],
  [
    'a store that evicts goes past older records in flight without a scan',
    'acquired',
    `const store = make({ whenFull: 'evict' })
    for (let i = 0; i < RECORDS - BEGINS; i++) attempt(store, 'in flight ' + i)
    for (let i = 0; i < BEGINS; i++) attempt(store, 'completed ' + i, 'complete')
    await counted((i) => attempt(store, 'new ' + i))`,
  ],
  [
    'a store with all the unknown outcomes that it may have refuses without a scan',
    'store_full',
    `const store = make({ maxUncertainBytes: 350 * RECORDS })
    for (let i = 0; i < RECORDS; i++) attempt(store, 'uncertain ' + i, 'fail')
    await counted((i) => attempt(store, 'new ' + i, 'fail'))`,
  ],
  [
    'the oldest of many certain failures is forgotten without a scan',
    'acquired',
    `const store = make({ maxBytes: 8 * 350 * RECORDS })
    for (let i = 0; i < RECORDS; i++) attempt(store, 'refused ' + i, 'refuse')
    await counted((i) => attempt(store, 'new ' + i, 'refuse'))`,
  ],
  [
    'retentions that were used once, and whose records are gone, cost nothing',
    'acquired',
    `const store = make()
    for (let i = 0; i < 10_000; i++) attempt(store, 'failing ' + i, 'refuse', RETENTION_MS + i)
    await counted((i) => attempt(store, 'new ' + i))`,
  ],
])('%s', async (_what, outcome, script) => {
  const { outcomes, most } = await counted(script)
  expect(outcomes).toEqual([outcome])
  expect(most).toBeGreaterThanOrEqual(BEGINS)
  expect(most).toBeLessThan(FEW)
})
