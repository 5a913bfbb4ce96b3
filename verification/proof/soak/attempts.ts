import { randomUUID } from 'node:crypto'
import type { Answer, Store } from 'once-per-key/core'
import { createRequestEngine, type RequestEngine, type RequestFacts, singleTenant } from 'once-per-key/http'
import type { Random } from './random.js'

/** How an attempt ends, and what of it is then to be kept. */
export const KINDS = [
  'failed',
  'failed after an effect',
  'completed without a body',
  'completed without its answer',
  'completed with a small answer',
  'completed with many headers',
  'completed with 1 KiB',
  'completed with 16 KiB',
  'completed under a long key',
] as const

export type Kind = (typeof KINDS)[number]

export const TIMES = { leaseMs: 8_000, storeTimeoutMs: 2_000, maxRunMs: 8_000, retentionMs: 16_000 } as const

/** The engine over a store, in front of which no framework stands. */
export function engineOver(store: Store): RequestEngine<unknown> {
  return createRequestEngine({ store, scope: singleTenant, ...TIMES })
}

/** One request under a key of its own, from claim to end. `null`: the store refused the claim. */
export async function attempt(engine: RequestEngine<unknown>, kind: Kind, random: Random): Promise<string | null> {
  const key = kind === 'completed under a long key' ? randomUUID().padEnd(250, '+') : randomUUID()
  const decision = await engine.decide(factsOf(key))
  if (decision.action !== 'execute') return null
  const { run } = decision
  switch (kind) {
    case 'failed after an effect':
      run.context.mayHaveEffect()
      await run.fail()
      return key
    case 'failed':
      await run.settle({ ...NO_BODY, status: 422 })
      return key
    default:
      await run.settle(answerOf(kind, random))
      return key
  }
}

export function factsOf(key: string): RequestFacts<unknown> {
  return {
    request: {},
    method: 'POST',
    target: '/payouts',
    rawHeaders: ['Idempotency-Key', key],
    body: { amountMinor: 129_900, currency: 'EUR' },
    bodyWasRead: true,
    isAbandoned: () => false,
  }
}

function answerOf(kind: Exclude<Kind, 'failed' | 'failed after an effect'>, random: Random): Answer {
  switch (kind) {
    case 'completed without a body':
      return { ...NO_BODY, status: 204, headers: [] }
    case 'completed without its answer':
      return { ...NO_BODY, body: null }
    case 'completed with many headers':
      return {
        ...NO_BODY,
        headers: [...headersOf(0), ...Array.from({ length: 20 }, () => STRANGE_HEADER)],
      }
    case 'completed with 1 KiB':
      return withBody(1_024)
    case 'completed with 16 KiB':
      return withBody(16 * 1_024)
    case 'completed with a small answer':
    case 'completed under a long key':
      return withBody(120 + random.below(240))
  }
}

const NO_BODY = { status: 201, statusMessage: '', headers: headersOf(0), body: Buffer.alloc(0) }
const STRANGE_HEADER = ['X-Rate-Limit', 'remaining=17'] as const
const BYTES = Buffer.alloc(16 * 1_024, '{"id":"payout_8d1f"}')

function withBody(bytes: number): Answer {
  return { ...NO_BODY, headers: headersOf(bytes), body: BYTES.subarray(0, bytes) }
}

/** Put together from pieces, as a framework does. */
function headersOf(bytes: number): [string, string][] {
  const id = randomUUID()
  return [
    ['Location', `/api/service/payouts/${id}`],
    ['Content-Type', 'application/json; charset=utf-8'],
    ['Content-Length', `${bytes}`],
    ['ETag', `W/"${bytes.toString(16)}-${id}"`],
  ]
}
