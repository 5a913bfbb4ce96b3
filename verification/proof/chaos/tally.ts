import type { KeyHistory } from './history.js'

/** What must have happened to show anything. */
export type Tally = Record<string, number>

/** What clients and services saw of the faults. */
export function tallyOf(histories: readonly KeyHistory[], unknownOutcome: 'rerun' | 'refuse'): Tally {
  const claims = histories.flatMap((history) => history.claims)
  const commands = histories.flatMap((history) => history.commands)
  const asked = histories.flatMap((history) => history.asked)
  const told = histories.flatMap((history) => history.told)
  const replied = (code: string) => asked.filter(({ reply }) => reply?.code === code).length
  const events = (event: string) => told.filter(({ line }) => line.msg === event).length
  const steps = histories.flatMap((history) => history.steps)
  return {
    'failed and tried again': claims.filter(({ previousOutcome }) => previousOutcome === 'failed').length,
    replays: asked.filter(({ reply }) => reply?.replayed).length,
    'in_flight refusals': replied('in_flight'),
    mismatches: replied('mismatched'),
    '503s': replied('store_unavailable'),
    'clients that aborted': asked.filter(({ end }) => end === 'aborted').length,
    'requests lost with their process': asked.filter(({ end }) => end === 'closed').length,
    'leases lost': events('lease_lost'),
    'stale commands': commands.filter(({ reply }) => reply?.outcome === 'stale').length,
    'completions pending': events('completion_pending'),
    'steps called': steps.filter(({ what }) => what === 'step called').length,
    ...(unknownOutcome === 'rerun'
      ? {
          takeovers: claims.filter(({ previousOutcome }) => previousOutcome === 'unknown').length,
          'steps resumed': events('step_resumed'),
          'steps called again': steps.filter((note) => note.what === 'step called' && note.told === 'unknown').length,
        }
      : { 'outcome_unknown refusals': replied('outcome_unknown') }),
  }
}

/** Something has not happened yet. */
export function isLacking(tally: Tally): boolean {
  return Object.values(tally).some((times) => times === 0)
}

export function add(sum: Tally, more: Tally): void {
  for (const [name, times] of Object.entries(more)) sum[name] = (sum[name] ?? 0) + times
}
