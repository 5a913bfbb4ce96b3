import type { Line } from './child.js'

/** What became of one event, by the receiver's own log. */
export interface Tally {
  readonly event: string
  /** Deliveries that reached the receiver. */
  readonly delivered: number
  /** Runs to success. */
  readonly handled: number
}

/** One of these is said of each delivery. */
const DECISIONS = ['claimed', 'replayed', 'in_flight', 'outcome_unknown', 'mismatched']

export function tallyOf(event: string, lines: readonly Line[]): Tally {
  const said = (msg: string) => lines.filter((line) => line.key === event && line.msg === msg).length
  const completed = said('completed')
  return {
    event,
    delivered: DECISIONS.reduce((sum, decision) => sum + said(decision), 0),
    // A kill can take the line away from a run that was stored: a repeat that is answered from the record proves it.
    handled: completed === 0 && said('replayed') > 0 ? 1 : completed,
  }
}

/** With Redis each event is handled once. Memory forgets at a restart: there it is handled at least once. */
export function isAsPromised(tallies: readonly Tally[], withRedis: boolean): boolean {
  return tallies.length > 0 && tallies.every(({ handled }) => handled === 1 || (handled > 1 && !withRedis))
}

export function tableOf(tallies: readonly Tally[]): string {
  const row = (event: string, delivered: string, handled: string) =>
    `${event.padEnd(42)} ${delivered.padStart(15)} ${handled.padStart(13)}`
  return [
    row('event', 'times delivered', 'times handled'),
    ...tallies.map(({ event, delivered, handled }) => row(event, `${delivered}`, `${handled}`)),
  ].join('\n')
}
