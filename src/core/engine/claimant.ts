import { rethrow } from '../events/own-context.js'
import type { Refused, Replayed } from '../events/refusal.js'
import type { MaybePromise } from '../maybe-promise.js'
import type { Run } from '../run/run.js'

/** The result of claiming an operation. */
export type Claimed = { readonly action: 'execute'; readonly run: Run } | Replayed | Refused

/**
 * Whoever claims an operation: one of the two is called, at most once, last, and in the request's own async context. What
 * it throws changes nothing, and is thrown again when nothing of ours runs.
 */
export interface Claimant {
  /** The operation must run. */
  claimed(run: Run): void
  /** It has already run, or is refused. */
  refused(told: Replayed | Refused): void
  /** Whether nobody wants the answer any more. Called while a duplicate waits (`inFlightWaitMs`). */
  isAbandoned(): boolean
}

/** The result of a claim as a value, or as a promise if it is not known at once. */
export class PromisedClaim implements Claimant {
  readonly isAbandoned: () => boolean
  #told: Claimed | undefined = undefined
  #resolve: ((told: Claimed) => void) | undefined = undefined

  constructor(isAbandoned: () => boolean) {
    this.isAbandoned = isAbandoned
  }

  claimed(run: Run): void {
    this.#tell({ action: 'execute', run })
  }

  refused(told: Replayed | Refused): void {
    this.#tell(told)
  }

  #tell(told: Claimed): void {
    this.#told = told
    this.#resolve?.(told)
  }

  get outcome(): MaybePromise<Claimed> {
    return (
      this.#told ??
      new Promise((resolve) => {
        this.#resolve = resolve
      })
    )
  }
}

export function tellClaim(claimant: Claimant, told: Claimed): void {
  try {
    if (told.action === 'execute') claimant.claimed(told.run)
    else claimant.refused(told)
  } catch (error) {
    rethrow(error)
  }
}

export function tellRun(claimant: Claimant, run: Run): void {
  try {
    claimant.claimed(run)
  } catch (error) {
    rethrow(error)
  }
}
