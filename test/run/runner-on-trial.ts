import type { Store } from 'once-per-key/core'
import { type RunnerEvent, type RunnerOptions, runner } from 'once-per-key/run'
import { TIMES } from '../support/engine-on-trial.js'
import { mapStore } from '../support/map-store.js'

export type Options = Partial<RunnerOptions>

/** A runner over a store whose clock can be moved: past it, an owner stalls, though its process knows nothing of that. */
export function runnerOnTrial(options: Options = {}, store?: Store) {
  let nowMs = 1
  const events: RunnerEvent[] = []
  const given: RunnerOptions & { readonly result?: undefined } = {
    store: store ?? mapStore(() => nowMs),
    name: 'jobs',
    onEvent: (event) => events.push(event),
    ...TIMES,
    ...options,
  }
  const once = runner(given)
  return {
    once,
    given,
    events,
    types: () => events.map(({ type }) => type),
    told: (type: RunnerEvent['type']) => events.filter((event) => event.type === type),
    pass(ms: number) {
      nowMs += ms
    },
  }
}

export const OPERATION = { scope: 'acme', key: 'job-1', input: { invoice: 'in_7', amount: 100 } }

/** A function that must not run. */
export async function mustNotRun(): Promise<never> {
  throw new Error('It ran.')
}

/** What a promise was rejected with. */
export async function rejection(promise: Promise<unknown>): Promise<Error & { code?: string }> {
  const settled = await promise.then(
    (value) => ({ value }),
    (error: Error) => ({ error }),
  )
  if ('error' in settled) return settled.error
  throw new Error(`It resolved with ${JSON.stringify(settled.value)}.`)
}
