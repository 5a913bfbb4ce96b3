import type { IdempotencyRecord, Store } from 'once-per-key/core'

/**
 * A transactional store in miniature: a running claim is somebody's open transaction, which shows nothing of itself; a
 * failure rolls it back and leaves nothing; a completion commits the record.
 */
export function transactionalMapStore(now: () => number): Store {
  const running = new Map<string, string>()
  const committed = new Map<string, { token: string; expiresAt: number; record: IdempotencyRecord }>()
  const hidden: IdempotencyRecord = {
    state: 'in-flight',
    fingerprint: null,
    attempt: null,
    uncertain: false,
    leaseRemainingMs: 1,
  }

  function standing(key: string) {
    const found = committed.get(key)
    return found !== undefined && now() < found.expiresAt ? found : null
  }

  function stale(key: string) {
    return { ok: false, record: structuredClone(standing(key)?.record ?? hidden) } as const
  }

  return {
    effects: 'inside',
    async begin(key, { token }) {
      const found = standing(key)
      if (found !== null) return { acquired: false, record: structuredClone(found.record) }
      const owner = running.get(key)
      if (owner !== undefined && owner !== token) return { acquired: false, record: hidden }
      running.set(key, token)
      return { acquired: true, attempt: 1, previousOutcome: 'none' }
    },
    async renew(key, { token }) {
      return running.get(key) === token ? { ok: true } : stale(key)
    },
    async complete(key, { token, fingerprint, attempt, answer, retentionMs }) {
      if (standing(key)?.token === token) return { ok: true }
      if (running.get(key) !== token) return stale(key)
      running.delete(key)
      const record = { state: 'completed', fingerprint, attempt, answer: structuredClone(answer) } as const
      committed.set(key, { token, expiresAt: now() + retentionMs, record })
      return { ok: true }
    },
    async release(key, { token }) {
      if (running.get(key) !== token) return stale(key)
      running.delete(key)
      return { ok: true }
    },
  }
}
