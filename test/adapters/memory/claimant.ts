import type { Answer, Begun, Done, Own, Store } from 'once-per-key/core'

export const RETENTION_MS = 86_400_000
export const LEASE_MS = 30_000
export const FAILED_MS = 930_000

export function answerOf(bytes: number): Answer {
  return { status: 200, statusMessage: '', headers: [], body: new Uint8Array(bytes) }
}

let tokens = 0

/** Somebody with a token of its own who sends commands for one key. */
export function claimant(store: Store, key: string, retentionMs = RETENTION_MS) {
  const token = `token ${++tokens}`
  const own: Own = { token, fingerprint: 'f', attempt: 1, uncertain: false, retentionMs }
  return {
    begin(): Promise<Begun> {
      return store.begin(key, { token, fingerprint: 'f', leaseMs: LEASE_MS, retentionMs, unknownOutcome: 'rerun' })
    },
    complete(answer = answerOf(0)): Promise<Done> {
      return store.complete(key, { ...own, answer })
    },
    fail({ uncertain = false } = {}): Promise<Done> {
      return store.release(key, { ...own, uncertain, failedMs: FAILED_MS })
    },
    renew(): Promise<Done> {
      return store.renew(key, { ...own, leaseMs: LEASE_MS })
    },
  }
}

/** What became of a key, without changing it: asked with a stale command, of a record that is known to be there. */
export async function stateOf(store: Store, key: string): Promise<string> {
  const done = await claimant(store, key).renew()
  return done.ok ? 'none' : (done.record?.state ?? 'none')
}
