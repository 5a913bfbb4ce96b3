import type { Bench, Law } from './bench.js'
import { ANSWER, type Claimant, SEEN_ANSWER } from './claimant.js'
import { assertPromise, failed, OK, type SeenRecord } from './seen.js'

/** What a command finds: the expected record, and its last owner. */
export interface Met {
  readonly owner: Claimant
  readonly record: SeenRecord | null
}

type Prepare = (bench: Bench) => Promise<Met>

/** Every kind of record, created with commands only. */
export const SITUATIONS = {
  none: async (bench) => ({ owner: bench.claimant(), record: null }),

  'in-flight, lease live': async (bench) => {
    const owner = await bench.claimant().claims()
    return { owner, record: bench.inFlight(owner) }
  },

  'in-flight, lease lapsed': async (bench) => {
    const owner = await claimAndLapse(bench)
    return { owner, record: bench.inFlight(owner, { lease: 'lapsed' }) }
  },

  'in-flight after a takeover, lease live': async (bench) => {
    const owner = await takeOverLapsed(bench, bench.longMs)
    return { owner, record: bench.inFlight(owner, { attempt: 2, uncertain: true }) }
  },

  'in-flight after a takeover, lease lapsed': async (bench) => {
    const owner = await takeOverLapsed(bench, bench.shortMs)
    await bench.pass()
    return { owner, record: bench.inFlight(owner, { attempt: 2, uncertain: true, lease: 'lapsed' }) }
  },

  completed: async (bench) => {
    const owner = await bench.claimant().claims()
    assertPromise(await owner.complete(), OK, 'The owner can complete.')
    return { owner, record: completed(owner) }
  },

  'completed, answer not kept': async (bench) => {
    const owner = await bench.claimant().claims()
    assertPromise(await owner.complete({ ...ANSWER, body: null }), OK, 'The owner can complete without its answer.')
    return { owner, record: { ...completed(owner), answer: { ...SEEN_ANSWER, body: null } } }
  },

  'failed, certain': async (bench) => {
    const owner = await bench.claimant().claims()
    assertPromise(await owner.release(), OK, 'The owner can release.')
    return { owner, record: failed() }
  },

  'failed, uncertain': async (bench) => {
    const owner = await bench.claimant().claims()
    assertPromise(await owner.release({ uncertain: true }), OK, 'The owner can release.')
    return { owner, record: failedUncertain(owner) }
  },
} satisfies Record<string, Prepare>

export type SituationName = keyof typeof SITUATIONS

/** A law about a command, by the situation that it meets. */
export function createSituationLaw(
  holds: Law['holds'],
  situation: string,
  name: string,
  check: (bench: Bench, met: Met) => Promise<void>,
): Law {
  return { name, holds, check: async (bench) => check(bench, await SITUATIONS[situation as SituationName](bench)) }
}

export function completed(owner: Claimant, attempt = 1) {
  return { state: 'completed', fingerprint: owner.fingerprint, attempt, answer: SEEN_ANSWER } as const
}

export function failedUncertain({ fingerprint }: Claimant, attempt = 1): SeenRecord {
  return { state: 'failed', fingerprint, attempt, uncertain: true }
}

/** The record as a command with this fingerprint gets it: without the answer if the fingerprint differs. */
export function hideForeignAnswer(fingerprint: string, record: SeenRecord | null): SeenRecord | null {
  if (record === null || !('answer' in record) || record.fingerprint === fingerprint) return record
  return { ...record, answer: null }
}

/** The owner of a first attempt, whose lease has lapsed. */
export async function claimAndLapse(bench: Bench): Promise<Claimant> {
  const owner = await bench.claimant().claims({ leaseMs: bench.shortMs })
  await bench.pass()
  return owner
}

/** It is not acquired, whatever record it is shown. */
export async function assertKeptOut(claimant: Claimant, promise: string): Promise<void> {
  const { acquired } = await claimant.begin()
  assertPromise({ acquired }, { acquired: false }, promise)
}

export async function takeOverLapsed(bench: Bench, leaseMs: number): Promise<Claimant> {
  await claimAndLapse(bench)
  return bench.claimant().claims({ leaseMs })
}

/**
 * The last owner repeats the command that wrote the record: its success shows that the record still has its token,
 * unchanged.
 */
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

/** What a command that changes nothing has found is still there, with its token. */
export async function checkUnchanged(bench: Bench, met: Met, name: string): Promise<void> {
  assertPromise(await bench.inspect(), met.record, `${name}, and changes nothing.`)
  if (met.record !== null) assertPromise(await repeatEnd(met), OK, `${name}, and the last owner still owns it.`)
}
