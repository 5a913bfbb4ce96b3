/** What must have happened in a run that is to show anything. */
export const HAPPENINGS = [
  'lost requests',
  'lost replies',
  'late requests',
  'late replies',
  'errors before the effect',
  'errors after the effect',
  'commands that threw',
  'empty replies',
  'duplicates',
  'begins sent again by a duplicate',
  'lost records',
  'unreadable records',
  'crashes',
  'stalls',
  'cut-off instances',
  'handlers that never ended',
  'clients that left during a run',
  'late begins',
  'claims given up',
  'claims by waiters whose client had left',
  'takeovers',
  'refused takeovers',
  'uncertain failures',
  'ignored signals',
  'obeyed signals',
  'late errors of a handler',
  'stale completions',
  'stale releases',
  'restored claims',
  'replays',
  'replays to a stalled run',
  'mismatches',
  'answers not kept',
  'pending completions',
  'pending completions that landed',
  'pending completions given up',
  'unconfirmed successes withheld',
  'duplicates that waited and became the owner',
  'unprotected runs',
  'ended retentions',
  'probes',
] as const

export type Happening = (typeof HAPPENINGS)[number]
export type Tally = Record<Happening, number>

export function emptyTally(): Tally {
  return Object.fromEntries(HAPPENINGS.map((happening) => [happening, 0])) as Tally
}
