import { type Claim, SINGLE_TENANT, type Store } from 'once-per-key/core'
import type { Findings } from '../layer.js'

/** Records that no store may drop: owners at work, and outcomes that nobody knows. */
export interface Planted {
  /** Starts their leases anew, and so their retention. */
  renew(): Promise<void>
  /** Looks at each, which changes none. */
  expectAlive(findings: Findings, about: string): Promise<void>
}

const LASTING_MS = 2 ** 31 - 1

/** Claims `each` keys that stay in flight, and as many whose attempt failed with an unknown outcome. */
export async function plant(store: Store, each: number): Promise<Planted> {
  const keys = Array.from({ length: each }, (_, i) => i)
  for (const i of keys) {
    await store.begin(`running ${i}`, claimOf(`owner ${i}`))
    await store.begin(`unknown ${i}`, claimOf(`owner ${i}`))
    await store.release(`unknown ${i}`, { ...ownOf(`owner ${i}`), uncertain: true, failedMs: 1 })
  }

  return {
    async renew() {
      for (const i of keys) await store.renew(`running ${i}`, { ...ownOf(`owner ${i}`), leaseMs: LASTING_MS })
    },
    async expectAlive(findings, about) {
      for (const i of keys) {
        for (const [name, state] of [
          ['running', 'in-flight'],
          ['unknown', 'failed'],
        ] as const) {
          const begun = await store.begin(`${name} ${i}`, { ...claimOf('stranger'), fingerprint: 'another' })
          const seen = begun.acquired ? 'none' : begun.record.state
          findings.expect('S12', seen === state, () => `${about}: the record "${name} ${i}", ${state}, is ${seen}.`)
        }
      }
    },
  }
}

function claimOf(token: string): Claim {
  return {
    token,
    scope: SINGLE_TENANT,
    fingerprint: 'f',
    leaseMs: LASTING_MS,
    retentionMs: LASTING_MS,
    unknownOutcome: 'refuse',
  }
}

function ownOf(token: string) {
  return { token, scope: SINGLE_TENANT, fingerprint: 'f', attempt: 1, uncertain: false, retentionMs: LASTING_MS }
}
