import { ANSWER, type Bench, type Claimant, SEEN_ANSWER } from './bench.js'
import { promised, type SeenRecord } from './seen.js'

/** What a command can meet: the record that must stand, and its last owner. */
export interface Met {
  readonly owner: Claimant
  readonly record: SeenRecord | null
}

export interface Situation {
  readonly holds: 'everywhere' | 'outside'
  readonly prepare: (bench: Bench) => Promise<Met>
}

/** Every kind of record, brought about by commands alone. */
export const SITUATIONS = {
  none: everywhere(async (bench) => ({ owner: bench.claimant(), record: null })),

  'in-flight, lease live': everywhere(async (bench) => {
    const owner = await bench.claimant().claims()
    return { owner, record: bench.inFlight(owner) }
  }),

  'in-flight, lease lapsed': outside(async (bench) => {
    const owner = await bench.claimant().claims({ leaseMs: bench.shortMs })
    await bench.pass()
    return { owner, record: bench.inFlight(owner, { lease: 'lapsed' }) }
  }),

  'in-flight after a takeover, lease live': outside(async (bench) => {
    const owner = await takenOver(bench, bench.longMs)
    return { owner, record: bench.inFlight(owner, { attempt: 2, uncertain: true }) }
  }),

  'in-flight after a takeover, lease lapsed': outside(async (bench) => {
    const owner = await takenOver(bench, bench.shortMs)
    await bench.pass()
    return { owner, record: bench.inFlight(owner, { attempt: 2, uncertain: true, lease: 'lapsed' }) }
  }),

  completed: everywhere(async (bench) => {
    const owner = await bench.claimant().claims()
    promised(await owner.complete(), { ok: true }, 'The owner can complete.')
    return { owner, record: completed(owner) }
  }),

  'completed, answer not kept': everywhere(async (bench) => {
    const owner = await bench.claimant().claims()
    promised(
      await owner.complete({ ...ANSWER, body: null }),
      { ok: true },
      'The owner can complete without its answer.',
    )
    return { owner, record: { ...completed(owner), answer: { ...SEEN_ANSWER, body: null } } }
  }),

  'failed, certain': outside(async (bench) => {
    const owner = await bench.claimant().claims()
    promised(await owner.release(), { ok: true }, 'The owner can release.')
    return { owner, record: { state: 'failed', fingerprint: null, attempt: 1, uncertain: false } }
  }),

  'failed, uncertain': outside(async (bench) => {
    const owner = await bench.claimant().claims()
    promised(await owner.release({ uncertain: true }), { ok: true }, 'The owner can release.')
    return { owner, record: { state: 'failed', fingerprint: owner.fingerprint, attempt: 1, uncertain: true } }
  }),
} satisfies Record<string, Situation>

export type SituationName = keyof typeof SITUATIONS

export function completed(owner: Claimant, attempt = 1) {
  return { state: 'completed', fingerprint: owner.fingerprint, attempt, answer: SEEN_ANSWER } as const
}

/** A second owner, after the first one's lease lapsed. */
export async function takenOver(bench: Bench, leaseMs: number): Promise<Claimant> {
  await bench.claimant().claims({ leaseMs: bench.shortMs })
  await bench.pass()
  return bench.claimant().claims({ leaseMs })
}

/** The last owner may send the command again that wrote the record: so the record is still its own, and unchanged. */
export async function repeatEnd(met: Met): Promise<unknown> {
  switch (met.record?.state) {
    case 'completed':
      return met.owner.complete()
    case 'failed':
      return met.owner.release()
    default:
      return met.owner.renew()
  }
}

function everywhere(prepare: Situation['prepare']): Situation {
  return { holds: 'everywhere', prepare }
}

function outside(prepare: Situation['prepare']): Situation {
  return { holds: 'outside', prepare }
}
