import {
  type Answer,
  type BeginReply,
  type CommandReply,
  type Ownership,
  SINGLE_TENANT,
  type Store,
} from 'once-per-key/core'

export const RETENTION_MS = 86_400_000
export const LEASE_MS = 30_000
export const FAILED_MS = 930_000

export function answerOf(bytes: number): Answer {
  return { status: 200, statusMessage: '', headers: [], body: new Uint8Array(bytes) }
}

let tokens = 0

/** Somebody with a token of its own who sends commands for one key; of a scope that shares the store with no other. */
export function claimant(store: Store, key: string, retentionMs = RETENTION_MS, scope = SINGLE_TENANT) {
  const token = `token ${++tokens}`
  const own: Ownership = { token, scope, fingerprint: 'f', attempt: 1, uncertain: false, retentionMs }
  return {
    async begin(): Promise<BeginReply> {
      return store.begin(key, {
        token,
        scope,
        fingerprint: 'f',
        leaseMs: LEASE_MS,
        retentionMs,
        unknownOutcome: 'rerun',
      })
    },
    async complete(answer = answerOf(0)): Promise<CommandReply> {
      return store.complete(key, { ...own, answer })
    },
    async fail({ uncertain = false } = {}): Promise<CommandReply> {
      return store.release(key, { ...own, uncertain, failedMs: FAILED_MS })
    },
    async renew(): Promise<CommandReply> {
      return store.renew(key, { ...own, leaseMs: LEASE_MS })
    },
  }
}

/** What became of a key, without changing it: asked with a stale command, of a record that is known to be there. */
export async function stateOf(store: Store, key: string): Promise<string> {
  const done = await claimant(store, key).renew()
  return done.ok ? 'none' : (done.record?.state ?? 'none')
}
