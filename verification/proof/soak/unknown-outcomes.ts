import { SINGLE_TENANT, type Store } from 'once-per-key/core'
import { MemoryStore } from 'once-per-key/memory'
import { fakeClock } from '../../../test/support/fake-clock.js'
import type { Findings } from '../layer.js'

const KIB = 1024
const BUDGET_BYTES = 256 * KIB
const LEAST_RECORD_BYTES = 300
const ATTEMPTS = 2_000
const AT_ONCE = 500
const RETENTION_MS = 60_000

/**
 * A bank is down, and unknown outcomes are refused: a MemoryStore that has no room for more of them refuses claims. It
 * forgets none, or its retry would run as if it were new; and they are bounded, also where many claims were in flight.
 */
export async function unknownOutcomes(findings: Findings): Promise<void> {
  for (const whenFull of ['refuse', 'evict'] as const) {
    const clock = fakeClock()
    const store = new MemoryStore({ maxUncertainBytes: BUDGET_BYTES, whenFull, now: clock.now })
    const about = `a MemoryStore that ${whenFull}s when it is full, full of unknown outcomes,`
    const failed: string[] = []
    for (let i = 0; i < ATTEMPTS; i += AT_ONCE) {
      const keys = Array.from({ length: AT_ONCE }, (_, j) => `unknown ${i + j}`)
      const claimed: string[] = []
      for (const key of keys) if (await claims(store, key)) claimed.push(key)
      for (const key of claimed) await store.release(key, { ...ownOf(key), uncertain: true, failedMs: 1 })
      failed.push(...claimed)
    }

    const most = BUDGET_BYTES / LEAST_RECORD_BYTES
    findings.expect('S12', failed.length <= most, () => `${about} has ${failed.length}, where ${most} have room`)
    for (const key of failed) {
      const seen = await store.inspect(key)
      const isKept = seen?.state === 'failed' && seen.uncertain
      findings.expect('S5', isKept, () => `${about} has forgotten one of ${failed.length}: its retry runs as if new`)
    }
    clock.advance(RETENTION_MS)
    const isServed = await claims(store, 'later')
    findings.expect('L1', isServed, () => `${about} refuses a claim, although all of them have expired`)
  }
}

/** Whether there was room. */
async function claims(store: Store, key: string): Promise<boolean> {
  try {
    return (await store.begin(key, claimOf(key))).acquired
  } catch {
    return false
  }
}

const TERMS = { scope: SINGLE_TENANT, fingerprint: 'f', retentionMs: RETENTION_MS }

function claimOf(token: string) {
  return { ...TERMS, token, leaseMs: 1_000, unknownOutcome: 'refuse' } as const
}

function ownOf(token: string) {
  return { ...TERMS, token, attempt: 1, uncertain: false }
}
