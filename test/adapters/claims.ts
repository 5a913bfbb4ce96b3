import type { Answer, Claim, Ownership } from 'once-per-key/core'

export const ALL_BYTES = Uint8Array.from({ length: 256 }, (_, i) => i)

/** Everything that a client could mangle. */
export const ANSWER: Answer = {
  status: 201,
  statusMessage: 'Gr\u00f6\u00dfe',
  headers: [
    ['Link', '</a>; rel="next"'],
    ['Link', 'caf\u00e9 \u20ac'],
  ],
  body: ALL_BYTES,
}

export function claimOf(token: string, fingerprint = 'f'): Claim {
  return { token, scope: 'acme', fingerprint, leaseMs: 30_000, retentionMs: 3_600_000, unknownOutcome: 'rerun' }
}

/** What the owner of a first attempt shows with each command. */
export function ownOf(token: string, fingerprint = 'f'): Ownership {
  return { token, scope: 'acme', fingerprint, attempt: 1, uncertain: false, retentionMs: 3_600_000 }
}
