import type { Answer, Claim, Ownership, Store } from 'once-per-key/core'
import type { Findings } from '../layer.js'

/** How often a race had a loser, by what was raced for. */
export interface Losers {
  'claims that lost': number
  'take-overs that lost': number
  'completions that were refused': number
  replays: number
}

export interface Race {
  /** Of one client each. */
  readonly stores: readonly Store[]
  readonly findings: Findings
  readonly losers: Losers
  /** As if the owner had died. */
  lapse(key: string): Promise<unknown>
}

/**
 * All clients claim a key; once its owner is dead, all take it over; then the dead owner comes back, and everybody tries to
 * complete; and all claim again.
 */
export async function raceFor(key: string, { stores, findings, losers, lapse }: Race): Promise<void> {
  const all = <Reply>(send: (store: Store, client: number) => Reply | Promise<Reply>) =>
    Promise.all(stores.map(async (store, client) => send(store, client)))

  const claimed = await all((store, client) => store.begin(key, claimOf(`first ${client}`, LONG_MS)))
  const firsts = claimed.flatMap(({ acquired }, client) => (acquired ? [client] : []))
  losers['claims that lost'] += claimed.length - firsts.length
  findings.expect('S1', firsts.length === 1, () => `${key} was claimed at once by ${firsts}`)

  await lapse(key)
  const taken = await all((store, client) => store.begin(key, claimOf(`second ${client}`, LONG_MS)))
  const seconds = taken.flatMap(({ acquired }, client) => (acquired ? [client] : []))
  losers['take-overs that lost'] += taken.length - seconds.length
  findings.expect('S1', seconds.length === 1, () => `${key} was taken over at once by ${seconds}`)
  const [owner = 0] = seconds
  findings.expect(
    'S5',
    isEqual(taken[owner], { acquired: true, attempt: 2, previousOutcome: 'unknown' }),
    () => `${key} was taken over as ${JSON.stringify(taken[owner])}`,
  )

  const done = await all((store, client) => {
    const token = client === owner || client % 2 === 1 ? `second ${client}` : `first ${client}`
    return store.complete(key, { ...ownOf(token), answer: answerOf(client) })
  })
  const completions = done.flatMap(({ ok }, client) => (ok ? [client] : []))
  losers['completions that were refused'] += done.length - completions.length
  findings.expect(
    'S6',
    isEqual(completions, [owner]),
    () => `${key} is owned by ${owner}, and was completed by ${completions}`,
  )

  const replays = await all((store, client) => store.begin(key, claimOf(`third ${client}`, LONG_MS)))
  losers.replays += replays.length
  const wrong = replays.filter(
    (reply) => reply.acquired || reply.record.state !== 'completed' || reply.record.answer?.status !== 200 + owner,
  )
  findings.expect('S4', wrong.length === 0, () => `${key} was completed by ${owner}: ${JSON.stringify(wrong)}`)
}

const LONG_MS = 600_000

function claimOf(token: string, leaseMs: number): Claim {
  return { token, scope: 'races', fingerprint: 'f', leaseMs, retentionMs: LONG_MS, unknownOutcome: 'rerun' }
}

function ownOf(token: string): Ownership {
  return { token, scope: 'races', fingerprint: 'f', attempt: 2, uncertain: true, retentionMs: LONG_MS }
}

function answerOf(client: number): Answer {
  return { status: 200 + client, statusMessage: '', headers: [], body: new Uint8Array(0) }
}

function isEqual(one: unknown, other: unknown): boolean {
  return JSON.stringify(one) === JSON.stringify(other)
}
