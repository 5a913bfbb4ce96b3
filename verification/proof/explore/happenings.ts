import type { Entry } from './history.js'

/** What must have been seen for the search to show anything. */
export function noHappenings() {
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
    refusals: 0,
    refusals_after_an_effect: 0,
    breakdowns: 0,
    ends_without_an_answer: 0,
    lost_records: 0,
    crashes: 0,
    stalls: 0,
  }
}

export type Happenings = ReturnType<typeof noHappenings>

export function countIn(happenings: Happenings, entry: Entry): void {
  switch (entry.type) {
    case 'executed': {
      const { command, before, reply } = entry
      if ('ok' in reply) {
        if (command.name === 'complete' && !reply.ok) happenings.stale_completions++
        if (command.name === 'renew' && before === null) happenings.restored_claims++
        return
      }
      if (reply.acquired && reply.previousOutcome === 'unknown') happenings.takeovers++
      if (command.name === 'begin' && before?.token === command.claim.token) happenings.repeated_claims++
      return
    }
    case 'told':
      if (entry.told.kind !== 'problem') return
      if (entry.told.code === 'outcome_unknown') happenings.refused_takeovers++
      if (entry.told.code === 'mismatched') happenings.mismatches++
      if (entry.told.code === 'store_unavailable') happenings.given_up_claims++
      return
    case 'ended':
      if (entry.end === 'refusal') happenings.refusals++
      if (entry.end === 'late_refusal') happenings.refusals_after_an_effect++
      if (entry.end === 'breakdown') happenings.breakdowns++
      if (entry.end === 'no_answer') happenings.ends_without_an_answer++
      return
    case 'said':
      if (entry.event === 'replayed') happenings.replays++
      if (entry.event === 'completion_pending') happenings.pending_completions++
      if (entry.event === 'lease_lost') happenings.lost_leases++
      return
    case 'record_lost':
      happenings.lost_records++
      return
    case 'crashed':
      happenings.crashes++
      return
    case 'stalled':
      happenings.stalls++
  }
}
