import { Buffer } from 'node:buffer'
import { randomUUID } from 'node:crypto'
import type { Answer, Claim, StepChange } from '../core/index.js'
import type { WholeStore } from './held-store.js'
import {
  assertPromise,
  type SeenAnswer,
  type SeenBegun,
  type SeenDone,
  toSeenAnswer,
  toSeenBegun,
  toSeenDone,
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

const SCOPE = 'laws'
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
export const SEEN_ANSWER: SeenAnswer = toSeenAnswer(ANSWER)

const DEFAULTS = {
  leaseMs: LONG_MS,
  retentionMs: 2 * LONG_MS,
  failedMs: 2 * LONG_MS,
  unknownOutcome: 'rerun',
  attempt: 0,
  uncertain: false,
} as const

/** Claims `key` of a store by default, with a token of its own. */
export class Claimant {
  readonly token: string
  readonly fingerprint: string
  readonly #store: WholeStore
  readonly #usual: Terms
  /** Of what it owns, as `begin` returned it. */
  #owned: Pick<Terms, 'attempt' | 'uncertain'> | undefined

  constructor(store: WholeStore, key: string, usual: Partial<Terms>) {
    const { token = randomUUID(), fingerprint = FINGERPRINT } = usual
    this.token = token
    this.fingerprint = fingerprint
    this.#store = store
    this.#usual = { ...DEFAULTS, key, ...usual, token, fingerprint }
  }

  async begin(terms: Partial<Terms> = {}): Promise<SeenBegun> {
    const { key, fingerprint, leaseMs, retentionMs, unknownOutcome } = { ...this.#usual, ...terms }
    const claim = { token: this.token, scope: SCOPE, fingerprint, leaseMs, retentionMs, unknownOutcome }
    const begun = toSeenBegun(await this.#store.begin(key, claim))
    if (begun.acquired) this.#owned = { attempt: begun.attempt, uncertain: begun.previousOutcome === 'unknown' }
    return begun
  }

  async renew(terms?: Partial<Terms>): Promise<SeenDone> {
    const { key, own, leaseMs } = this.#sent(terms)
    return toSeenDone(await this.#store.renew(key, { ...own, leaseMs }))
  }

  async complete(answer = ANSWER, terms?: Partial<Terms>): Promise<SeenDone> {
    const { key, own } = this.#sent(terms)
    return toSeenDone(await this.#store.complete(key, { ...own, answer }))
  }

  async release(terms?: Partial<Terms>): Promise<SeenDone> {
    const { key, own, failedMs } = this.#sent(terms)
    return toSeenDone(await this.#store.release(key, { ...own, failedMs }))
  }

  /** `text`: the bytes of the result, as Latin-1; `null`: it was not kept. */
  async step(
    label: string,
    state: StepChange['state'],
    order: number,
    text: string | null = null,
    terms?: Partial<Terms>,
  ): Promise<SeenDone> {
    const { key, own, leaseMs } = this.#sent(terms)
    const result = text === null ? null : Buffer.from(text, 'latin1')
    return toSeenDone(await this.#store.step(key, { ...own, leaseMs, label, state, order, result }))
  }

  /** Begins a step, or renews. Resolves with whether the reply says that there was no record. */
  async restores(label?: string): Promise<boolean> {
    const { key, own, leaseMs } = this.#sent()
    const begun = { state: 'begun', order: 1, result: null } as const
    const reply =
      label === undefined
        ? await this.#store.renew(key, { ...own, leaseMs })
        : await this.#store.step(key, { ...own, leaseMs, label, ...begun })
    return reply.ok && reply.restored === true
  }

  /** Claims the key. Resolves with the recorded steps: label, state and result. */
  async recorded(): Promise<readonly string[]> {
    const { acquired, ...told } = await this.begin()
    assertPromise({ acquired }, { acquired: true }, 'A key that is free can be claimed.')
    return 'steps' in told ? told.steps : []
  }

  /** Claims the key, and fails unless it is acquired. */
  async claims(terms?: Partial<Terms>): Promise<this> {
    const { acquired } = await this.begin(terms)
    assertPromise({ acquired }, { acquired: true }, 'A key that is free can be claimed.')
    return this
  }

  #sent(terms?: Partial<Terms>) {
    const all = { ...this.#usual, ...this.#owned, ...terms }
    const { key, fingerprint, attempt, uncertain, retentionMs, leaseMs, failedMs } = all
    return {
      key,
      leaseMs,
      failedMs,
      own: { token: this.token, scope: SCOPE, fingerprint, attempt, uncertain, retentionMs },
    }
  }
}
