import type { Answer, Claim, machine, Ownership } from 'once-per-key/core'

export type StoredRecord = machine.StoredRecord

export const NOW = 1_000_000
export const LEASE_MS = 30_000
export const RETENTION_MS = 86_400_000
export const FAILED_MS = 930_000

export const ANSWER: Answer = { status: 201, statusMessage: '', headers: [], body: Uint8Array.of(1, 2, 3) }
export const OTHER_ANSWER: Answer = { ...ANSWER, status: 200 }

const kept = { token: 'owner', expiresAt: NOW + 60_000 }
const bound = { ...kept, fingerprint: 'f' }

/** Every kind of record, as the machine sees it at `NOW`. */
export const RECORDS = {
  'in-flight, lease live': { ...bound, state: 'in-flight', attempt: 3, uncertain: false, leaseUntil: NOW + 1 },
  'in-flight, uncertain, lease live': {
    ...bound,
    state: 'in-flight',
    attempt: 3,
    uncertain: true,
    leaseUntil: NOW + 1,
  },
  'in-flight, lapsed at this instant': { ...bound, state: 'in-flight', attempt: 3, uncertain: false, leaseUntil: NOW },
  'in-flight, lapsed long ago': { ...bound, state: 'in-flight', attempt: 3, uncertain: false, leaseUntil: NOW - 9_999 },
  'in-flight, uncertain, lapsed': { ...bound, state: 'in-flight', attempt: 3, uncertain: true, leaseUntil: NOW },
  'in-flight, first attempt, lapsed': { ...bound, state: 'in-flight', attempt: 1, uncertain: false, leaseUntil: NOW },
  completed: { ...bound, state: 'completed', attempt: 3, answer: ANSWER },
  'completed, answer not kept': { ...bound, state: 'completed', attempt: 3, answer: { ...ANSWER, body: null } },
  'failed, certain': { ...kept, state: 'failed', fingerprint: null, attempt: 3, uncertain: false },
  'failed, never confirmed': { ...kept, state: 'failed', fingerprint: null, attempt: 0, uncertain: false },
  'failed, uncertain': { ...bound, state: 'failed', attempt: 3, uncertain: true },
} as const satisfies Record<string, StoredRecord>

export type RecordName = keyof typeof RECORDS
export const NAMES = Object.keys(RECORDS) as RecordName[]

export const claimOf = (changes: Partial<Claim> = {}): Claim => ({
  token: 'other',
  scope: 'acme',
  fingerprint: 'f',
  leaseMs: LEASE_MS,
  retentionMs: RETENTION_MS,
  unknownOutcome: 'rerun',
  ...changes,
})
export const ownOf = (changes: Partial<Ownership> = {}): Ownership => ({
  token: 'owner',
  scope: 'acme',
  fingerprint: 'f',
  attempt: 3,
  uncertain: false,
  retentionMs: RETENTION_MS,
  ...changes,
})

/** What a reply shows of a record: all but the token and the times of the store's clock; an answer only to its own fingerprint. */
export function shown(record: StoredRecord, asker = record.fingerprint) {
  const { token: _, expiresAt: __, ...rest } = record
  if (rest.state === 'completed' && asker !== rest.fingerprint) return { ...rest, answer: null }
  if (rest.state !== 'in-flight') return rest
  const { leaseUntil, ...inFlight } = rest
  return { ...inFlight, leaseRemainingMs: leaseUntil - NOW }
}
