import type { Store } from 'once-per-key/core'
import {
  createRequestEngine,
  type Decision,
  type IdempotencyEvent,
  type IdempotencyOptions,
  type RequestRun,
} from 'once-per-key/http'
import { type FailingStore, failingStore } from './failing-store.js'
import { type Request, requestFacts } from './request-facts.js'

/** Durations that are easy to reckon with: a renewal every 4 s, a lapse after 12 s, a command for 1 s. */
export const TIMES = { leaseMs: 12_000, storeTimeoutMs: 1_000, maxRunMs: 60_000, retentionMs: 3_600_000 } as const

export type Options = Partial<IdempotencyOptions<Request>>

/** An engine over a store that fails on command, and all that it tells. Use it under a fake clock. */
export function engineOnTrial(options: Options = {}, store: FailingStore = failingStore()) {
  const events: IdempotencyEvent[] = []
  const engine = createRequestEngine<Request>({
    store: store as Store,
    scope: ({ scope = 'acme' }) => scope,
    onEvent: (event) => events.push(event),
    ...TIMES,
    ...options,
  })

  const send = async (request?: Request): Promise<Decision> => engine.decide(requestFacts(request))

  return {
    engine,
    store,
    events,
    types: () => events.map(({ type }) => type),
    send,
    /** Sends a request that must be told to run. */
    run: async (request?: Request): Promise<RequestRun> => runOf(await send(request)),
  }
}

export function runOf(decision: Decision): RequestRun {
  if (decision.action === 'execute') return decision.run
  throw new Error(`expected a run; seen: ${outcomeOf(decision)}`)
}

/** A decision, or what to send at a run's end, in a word: what was done, or the problem's code. */
export function outcomeOf(told: { readonly action: string; readonly problem?: { readonly code: string } }): string {
  return told.problem === undefined ? told.action : told.problem.code
}
