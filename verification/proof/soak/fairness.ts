import type { Answer, Ownership, Store } from 'once-per-key/core'
import { MemoryStore } from 'once-per-key/memory'
import type { Findings } from '../layer.js'

const MIB = 2 ** 20
const RECORDS = 1_000
const LASTING_MS = 2 ** 31 - 1

/** What one merchant sends, and another must not feel: it fills the store, in each way that there is. */
const FLOODS: Readonly<Record<string, (store: Store, key: string) => Promise<unknown>>> = {
  'stays in flight': (store, key) => claim(store, 'greedy', key),
  'completes without a body': (store, key) => complete(store, 'greedy', key, 0),
  'completes with a large answer': (store, key) => complete(store, 'greedy', key, 16 * 1_024),
  'fails after an effect': (store, key) => fail(store, 'greedy', key, true),
  'fails for certain': (store, key) => fail(store, 'greedy', key, false),
}

/** No scope can fill a MemoryStore for the others, nor push their records out: whatever it does, and whenever it is full. */
export async function fairness(findings: Findings): Promise<void> {
  for (const whenFull of ['refuse', 'evict'] as const) {
    for (const [flood, send] of Object.entries(FLOODS)) {
      const store = new MemoryStore({ maxBytes: 4 * MIB, maxEntries: RECORDS, maxUncertainBytes: MIB, whenFull })
      const about = `a MemoryStore that ${whenFull}s when it is full, of which a merchant ${flood} ${5 * RECORDS} times,`
      await complete(store, 'careful', 'paid', 100)
      await fail(store, 'careful', 'unknown', true)
      await fail(store, 'careful', 'failed', false)
      for (let i = 0; i < 5 * RECORDS; i++) await send(store, `${i}`).catch(() => {})

      const paid = await store.inspect('careful:paid')
      const isKept = paid?.state === 'completed' && paid.answer?.body?.byteLength === 100
      findings.expect('S12', isKept, () => `${about} has lost another's answer`)
      for (const key of ['unknown', 'failed']) {
        const record = await store.inspect(`careful:${key}`)
        findings.expect('S12', record?.state === 'failed', () => `${about} has lost what another ${key}`)
      }
      const served = await complete(store, 'newcomer', 'first', 100).catch(() => false)
      findings.expect('S12', served, () => `${about} has no room for a newcomer`)
    }
  }
}

async function claim(store: Store, scope: string, key: string): Promise<Ownership & { readonly key: string }> {
  const terms = { token: `${scope} ${key}`, scope, fingerprint: 'f', retentionMs: LASTING_MS }
  await store.begin(`${scope}:${key}`, { ...terms, leaseMs: LASTING_MS, unknownOutcome: 'rerun' })
  return { ...terms, key: `${scope}:${key}`, attempt: 1, uncertain: false }
}

async function complete(store: Store, scope: string, key: string, bytes: number): Promise<boolean> {
  const { key: recordKey, ...own } = await claim(store, scope, key)
  const answer: Answer = { status: 200, statusMessage: '', headers: [], body: Buffer.alloc(bytes) }
  return (await store.complete(recordKey, { ...own, answer })).ok
}

async function fail(store: Store, scope: string, key: string, uncertain: boolean): Promise<void> {
  const { key: recordKey, ...own } = await claim(store, scope, key)
  await store.release(recordKey, { ...own, uncertain, failedMs: LASTING_MS })
}
