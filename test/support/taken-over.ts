import type { Answer, Store } from 'once-per-key/core'
import { MemoryStore } from 'once-per-key/memory'

/** What another attempt answered. */
export const OTHERS: Answer = {
  status: 201,
  statusMessage: 'Paid By Another',
  headers: [['X-Receipt', 'another']],
  body: Buffer.from('paid by another'),
}

/** A store in which somebody else has taken the record over by the time that the handler ends. */
export function takenOver(record: { readonly completed: boolean }): Store {
  const store: Store = new MemoryStore()
  return {
    effects: store.effects,
    begin: (key, claim) => store.begin(key, claim),
    renew: (key, own) => store.renew(key, own),
    async complete(_key, { fingerprint }) {
      if (record.completed)
        return { ok: false, record: { state: 'completed', fingerprint, attempt: 2, answer: OTHERS } }
      return {
        ok: false,
        record: { state: 'in-flight', fingerprint, attempt: 2, uncertain: true, leaseRemainingMs: 1_000 },
      }
    },
    release: (key, own) => store.release(key, own),
  }
}
