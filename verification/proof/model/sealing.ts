import type { Answer, IdempotencyRecord, Store } from 'once-per-key/core'
import { MemoryStore } from 'once-per-key/memory'
import { newSealingKey, SealedStoreError, type SealedStoreErrorCode, sealed } from 'once-per-key/sealed'
import type { Event } from '../../../test/support/histories.js'

/** What a sealed store is made of. */
export interface Sealing {
  readonly inner: Store
  readonly key: string
  readonly compress: boolean
}

const KEYS = [newSealingKey(), newSealingKey()] as const
const EVERY = 3

/** Every third history has its answers sealed, compressed or not. */
export function sealedInTurn(number: number, inner: Store): { readonly store: Store; readonly sealing?: Sealing } {
  if (number % EVERY !== 0) return { store: inner }
  const sealing = { inner, key: KEYS[0], compress: number % (2 * EVERY) === 0 }
  return { store: sealed(inner, { keys: [sealing.key], compress: sealing.compress }), sealing }
}

/** An owner sends the fingerprint of its claim with each command, as engines do: its seals are bound to it. */
export function withFingerprintsOfClaims(history: readonly Event[]): Event[] {
  return history.map((event): Event => {
    switch (event.type) {
      case 'advance':
        return event
      case 'begin':
        return { ...event, claim: { ...event.claim, fingerprint: fingerprintOf(event.claim.token) } }
      default:
        return { ...event, own: { ...event.own, fingerprint: fingerprintOf(event.own.token) } } as Event
    }
  })
}

function fingerprintOf(token: string): string {
  return token === 't1' ? 'g' : 'f'
}

/** What is wrong with the seal of a completed record; `null`: nothing. */
export async function flawOfSeal({ inner, key }: Sealing, recordKey: string, answer: Answer): Promise<string | null> {
  const record = await inner.inspect?.(recordKey)
  if (record?.state !== 'completed' || record.answer === null) return 'the inner store shows no answer'
  if (isReadable(record.answer, answer)) return 'the inner store shows the answer itself'

  const stranger = sealed(inner, { keys: [KEYS[1]] })
  const { fingerprint } = record
  const terms = {
    token: 'stranger',
    scope: 'acme',
    fingerprint,
    leaseMs: 1,
    retentionMs: 1,
    unknownOutcome: 'rerun' as const,
  }
  const withOtherKey =
    (await refusal('seal_key_missing', () => stranger.begin(recordKey, terms))) ??
    (await refusal('seal_key_missing', () => stranger.inspect?.(recordKey)))
  if (withOtherKey !== null) return `another key: ${withOtherKey}`

  const elsewhere = sealed(await movedTo('another key', record), { keys: [key] })
  const ofOtherRecord = await refusal('seal_broken', () => elsewhere.inspect?.('another key'))
  return ofOtherRecord === null ? null : `moved to another record: ${ofOtherRecord}`
}

function isReadable(kept: Answer, answer: Answer): boolean {
  const isAsItWas = kept.status !== 0 || kept.headers.some(([name]) => name !== 'sealed')
  return isAsItWas || (answer.body !== null && kept.body?.byteLength === answer.body.byteLength)
}

async function refusal(code: SealedStoreErrorCode, look: () => unknown): Promise<string | null> {
  try {
    return `it gets ${JSON.stringify(await look())}`
  } catch (error) {
    return error instanceof SealedStoreError && error.code === code ? null : String(error)
  }
}

/** Somebody who can write to a store gives a record the answer of another. */
async function movedTo(recordKey: string, { fingerprint, answer }: CompletedRecord): Promise<Store> {
  const store = new MemoryStore()
  const own = { token: 'mover', scope: 'acme', fingerprint, retentionMs: 1_000 }
  await store.begin(recordKey, { ...own, leaseMs: 1_000, unknownOutcome: 'rerun' })
  await store.complete(recordKey, { ...own, attempt: 1, uncertain: false, answer: answer as Answer })
  return store
}

type CompletedRecord = Extract<IdempotencyRecord, { state: 'completed' }>
