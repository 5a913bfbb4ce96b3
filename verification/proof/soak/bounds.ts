import { randomUUID } from 'node:crypto'
import { SINGLE_TENANT, type Store } from 'once-per-key/core'
import { MemoryStore } from 'once-per-key/memory'
import { fakeClock } from '../../../test/support/fake-clock.js'
import type { Findings } from '../layer.js'
import { plant } from './lasting-records.js'

const MOST_RECORDS = 1_000
const PLANTED = 200
const RETENTION_MS = 16_000

/** The bound on the number of records, when full, when refusing and when evicting: and what must never go. */
export async function bounds(findings: Findings): Promise<void> {
  for (const whenFull of ['refuse', 'evict'] as const) {
    const clock = fakeClock()
    const store = new MemoryStore({ maxEntries: MOST_RECORDS, whenFull, now: clock.now })
    let evictions = 0
    store.observe(() => evictions++)
    const about = `a MemoryStore of ${MOST_RECORDS} records that ${whenFull}s when it is full`
    const planted = await plant(store, PLANTED)
    const room = MOST_RECORDS - PLANTED // What failed is kept besides.

    const made: string[] = []
    for (let i = 0; i < 3 * MOST_RECORDS; i++) {
      const key = randomUUID()
      if (await complete(store, key)) made.push(key)
    }
    const kept = await stillKnown(store, made)
    findings.expect('S12', kept === room, () => `${about} keeps ${kept} completed records, where ${room} have room`)
    const dropped = made.length - kept
    findings.expect('S12', evictions === dropped, () => `${about} dropped ${dropped} records, and told of ${evictions}`)
    findings.expect('S12', evictions === 0 || whenFull === 'evict', () => `${about} dropped ${evictions} records`)
    await planted.expectAlive(findings, about)

    clock.advance(RETENTION_MS)
    await planted.renew()
    const later = await complete(store, randomUUID())
    findings.expect('L1', later, () => `${about} refuses a claim, although all others have expired`)
    await planted.expectAlive(findings, `${about}, after a retention`)
  }
}

const TERMS = { scope: SINGLE_TENANT, fingerprint: 'f', retentionMs: RETENTION_MS }

/** Whether there was room. */
async function complete(store: Store, key: string): Promise<boolean> {
  const own = { ...TERMS, token: key, attempt: 1, uncertain: false }
  try {
    await store.begin(key, { ...TERMS, token: key, leaseMs: 1_000, unknownOutcome: 'rerun' })
  } catch {
    return false
  }
  await store.complete(key, { ...own, answer: { status: 204, statusMessage: '', headers: [], body: null } })
  return true
}

/** Asked by a stranger's release, which changes no record and adds none that counts. */
async function stillKnown(store: Store, keys: readonly string[]): Promise<number> {
  const stranger = { ...TERMS, token: 'stranger', attempt: 0, uncertain: false, failedMs: 1 }
  const replies = await Promise.all(keys.map((key) => store.release(key, stranger)))
  return replies.filter(({ ok }) => !ok).length
}
