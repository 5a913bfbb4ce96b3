import type { Store } from 'once-per-key/core'
import { ANSWER, claimOf, ownOf } from './claims.js'

const failedMs = 600_000
const ANSWER_NOT_KEPT = { ...ANSWER, statusMessage: '', headers: [], body: null }
const uncertain = { ...ownOf('owner', 'fingerprint'), uncertain: true }
const own = ownOf('owner', 'fingerprint')

/** One record of each kind: how it comes to be, and what a stranger is shown of it. */
export const RECORDS: Readonly<
  Record<
    string,
    { write(store: Store, key: string): Promise<unknown>; readonly shown: Readonly<Record<string, unknown>> }
  >
> = {
  'in-flight': {
    write: async (store, key) => store.begin(key, claimOf('owner', 'fingerprint')),
    shown: { state: 'in-flight', fingerprint: 'fingerprint', attempt: 1, uncertain: false },
  },
  'in-flight, uncertain': {
    write: async (store, key) => store.renew(key, { ...uncertain, attempt: 300, leaseMs: 30_000 }),
    shown: { state: 'in-flight', fingerprint: 'fingerprint', attempt: 300, uncertain: true },
  },
  completed: {
    write: async (store, key) => store.complete(key, { ...own, attempt: 2, answer: ANSWER }),
    shown: { state: 'completed', fingerprint: 'fingerprint', attempt: 2, answer: ANSWER },
  },
  'completed, answer not kept': {
    write: async (store, key) => store.complete(key, { ...own, answer: ANSWER_NOT_KEPT }),
    shown: { state: 'completed', fingerprint: 'fingerprint', attempt: 1, answer: ANSWER_NOT_KEPT },
  },
  'completed, empty body': {
    write: async (store, key) => store.complete(key, { ...own, answer: { ...ANSWER, body: new Uint8Array() } }),
    shown: {
      state: 'completed',
      fingerprint: 'fingerprint',
      attempt: 1,
      answer: { ...ANSWER, body: new Uint8Array() },
    },
  },
  failed: {
    write: async (store, key) => store.release(key, { ...own, failedMs }),
    shown: { state: 'failed', fingerprint: null, attempt: 1, uncertain: false },
  },
  'failed, uncertain': {
    write: async (store, key) => store.release(key, { ...uncertain, failedMs }),
    shown: { state: 'failed', fingerprint: 'fingerprint', attempt: 1, uncertain: true },
  },
}
