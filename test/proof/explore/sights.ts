import type { Entry } from './history.js'

/** What must have been seen for the search to show anything. */
export function noSights() {
  return {
    takeovers: 0,
    refused_takeovers: 0,
    replays: 0,
    mismatches: 0,
    stale_completions: 0,
    repeated_claims: 0,
    restored_claims: 0,
    pending_completions: 0,
    given_up_claims: 0,
    lost_leases: 0,
    uncertain_failures: 0,
    lost_records: 0,
    crashes: 0,
    stalls: 0,
  }
}

export type Sights = ReturnType<typeof noSights>

export function countIn(sights: Sights, entry: Entry): void {
  switch (entry.type) {
    case 'executed': {
      const { command, before, reply } = entry
      if ('ok' in reply) {
        if (command.name === 'complete' && !reply.ok) sights.stale_completions++
        if (command.name === 'renew' && before === null) sights.restored_claims++
        return
      }
      if (reply.acquired && reply.previousOutcome === 'unknown') sights.takeovers++
      if (command.name === 'begin' && before?.token === command.claim.token) sights.repeated_claims++
      return
    }
    case 'told':
      if (entry.told.kind !== 'problem') return
      if (entry.told.code === 'outcome_unknown') sights.refused_takeovers++
      if (entry.told.code === 'mismatched') sights.mismatches++
      if (entry.told.code === 'store_unavailable') sights.given_up_claims++
      return
    case 'ended':
      if (entry.end === 'uncertain') sights.uncertain_failures++
      return
    case 'said':
      if (entry.event === 'replayed') sights.replays++
      if (entry.event === 'completion_pending') sights.pending_completions++
      if (entry.event === 'lease_lost') sights.lost_leases++
      return
    case 'record_lost':
      sights.lost_records++
      return
    case 'crashed':
      sights.crashes++
      return
    case 'stalled':
      sights.stalls++
  }
}
