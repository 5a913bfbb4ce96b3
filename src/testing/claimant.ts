import { Buffer } from 'node:buffer'
import { randomUUID } from 'node:crypto'
import type { Answer, Claim, CommandReply, Ownership, StepChange, Store } from '../core/index.js'
import {
  promised,
  type SeenAnswer,
  type SeenBegun,
  type SeenDone,
  seenAnswer,
  seenBegun,
  seenDone,
  seenSteps,
} from './seen.js'

/** Longer than any test. */
export const LONG_MS = 3_600_000

export interface Terms {
  readonly key: string
  readonly token: string
  readonly fingerprint: string
  readonly leaseMs: number
  readonly retentionMs: number
  readonly failedMs: number
  readonly unknownOutcome: Claim['unknownOutcome']
  /** The attempt that an owner sends; by default, the one that `begin` returned. */
  readonly attempt: number
  readonly uncertain: boolean
}

export interface Claimant {
  readonly token: string
  readonly fingerprint: string
  begin(terms?: Partial<Terms>): Promise<SeenBegun>
  renew(terms?: Partial<Terms>): Promise<SeenDone>
  complete(answer?: Answer, terms?: Partial<Terms>): Promise<SeenDone>
  release(terms?: Partial<Terms>): Promise<SeenDone>
  /** `result`: bytes, as Latin-1; `null`: it was not kept. */
  step(
    label: string,
    state: StepChange['state'],
    order: number,
    result?: string | null,
    terms?: Partial<Terms>,
  ): Promise<SeenDone>
  /** Begins a step, or renews. Resolves with whether the reply says that there was no record. */
  restores(label?: string): Promise<boolean>
  /** Claims the key. Resolves with the recorded steps: label, state and result. */
  recorded(): Promise<string[]>
  /** Claims the key, and fails unless it is acquired. */
  claims(terms?: Partial<Terms>): Promise<Claimant>
}

export const FINGERPRINT = 'a'.repeat(64)
/** Differs in the last character: a fingerprint counts as a whole. */
export const OTHER_FINGERPRINT = `${'a'.repeat(63)}b`

export const ANSWER: Answer = {
  status: 201,
  statusMessage: '',
  headers: [['content-type', 'application/json']],
  body: new TextEncoder().encode('{"id":"payout_1"}'),
}
export const OTHER_ANSWER: Answer = { ...ANSWER, status: 200, body: new TextEncoder().encode('{"id":"payout_2"}') }
export const SEEN_ANSWER: SeenAnswer = seenAnswer(ANSWER)

/** A claimant with its own token, which claims `key` of the store by default. */
export function claimantOf(store: Store, key: string, usual: Partial<Terms>): Claimant {
  const token = usual.token ?? randomUUID()
  const scope = 'laws'
  const fingerprint = usual.fingerprint ?? FINGERPRINT
  const defaults: Terms = {
    key,
    leaseMs: LONG_MS,
    retentionMs: 2 * LONG_MS,
    failedMs: 2 * LONG_MS,
    unknownOutcome: 'rerun',
    attempt: 0,
    uncertain: false,
    ...usual,
    token,
    fingerprint,
  }
  let owned = { attempt: defaults.attempt, uncertain: defaults.uncertain }

  const own = (terms: Partial<Terms>): Ownership & { key: string; leaseMs: number; failedMs: number } => {
    const { key, fingerprint, attempt, uncertain, retentionMs, leaseMs, failedMs } = { ...defaults, ...owned, ...terms }
    return { key, token, scope, fingerprint, attempt, uncertain, retentionMs, leaseMs, failedMs }
  }

  async function begin(terms: Partial<Terms> = {}): Promise<SeenBegun> {
    const { key, fingerprint, leaseMs, retentionMs, unknownOutcome } = { ...defaults, ...terms }
    const begun = seenBegun(await store.begin(key, { token, scope, fingerprint, leaseMs, retentionMs, unknownOutcome }))
    if (begun.acquired) owned = { attempt: begun.attempt, uncertain: begun.previousOutcome === 'unknown' }
    return begun
  }

  const self: Claimant = {
    token,
    fingerprint,
    begin,
    ...stepsOf(store, own, { ...defaults, scope }),
    async renew(terms = {}) {
      const { key, failedMs: _, ...rest } = own(terms)
      return seenDone(await store.renew(key, rest))
    },
    async complete(answer = ANSWER, terms = {}) {
      const { key, failedMs: _, leaseMs: __, ...rest } = own(terms)
      return seenDone(await store.complete(key, { ...rest, answer }))
    },
    async release(terms = {}) {
      const { key, leaseMs: _, ...rest } = own(terms)
      return seenDone(await store.release(key, rest))
    },
    async claims(terms = {}) {
      const { acquired } = await begin(terms)
      promised({ acquired }, { acquired: true }, 'A key that is free can be claimed.')
      return self
    },
  }
  return self
}

/** The part of a claimant that is about steps. */
function stepsOf(
  store: Store,
  own: (terms: Partial<Terms>) => Ownership & { key: string; leaseMs: number; failedMs: number },
  claim: Terms & Pick<Claim, 'scope'>,
): Pick<Claimant, 'step' | 'restores' | 'recorded'> {
  async function sendStep(change: StepChange, terms: Partial<Terms>): Promise<CommandReply> {
    promised(typeof store.step, 'function', 'A store that is stepped has `step`.')
    const { key, failedMs: _, ...rest } = own(terms)
    return (await store.step?.(key, { ...rest, ...change })) as CommandReply
  }

  return {
    async step(label, state, order, result = null, terms = {}) {
      return seenDone(await sendStep({ label, state, order, result: result === null ? null : bytesOf(result) }, terms))
    },
    async restores(label) {
      const { failedMs: _, key, ...rest } = own({})
      const reply =
        label === undefined
          ? await store.renew(key, rest)
          : await sendStep({ label, state: 'begun', order: 1, result: null }, {})
      return reply.ok && reply.restored === true
    },
    async recorded() {
      const { key, token, scope, fingerprint, leaseMs, retentionMs, unknownOutcome } = claim
      const reply = await store.begin(key, { token, scope, fingerprint, leaseMs, retentionMs, unknownOutcome })
      promised({ acquired: reply.acquired }, { acquired: true }, 'A key that is free can be claimed.')
      return reply.acquired ? seenSteps(reply.steps ?? []) : []
    },
  }
}

const bytesOf = (text: string): Buffer => Buffer.from(text, 'latin1')
