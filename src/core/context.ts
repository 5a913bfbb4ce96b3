import { derivedKey } from './derived-key.js'
import type { Identity } from './identity.js'
import type { PreviousOutcome } from './record.js'

/** What a handler gets. */
export interface IdempotencyContext {
  readonly key: string
  readonly scope: string
  /** 1, 2, 3 … while the record lives; 0 for a run that no claim protects (`storeFailure: 'runUnprotected'`). */
  readonly attempt: number
  /**
   * What became of earlier attempts. `'unknown'`: one died, stalled, or failed in a way that leaves its effect open; look
   * whether the effect took place before repeating it.
   */
  readonly previousOutcome: PreviousOutcome
  /**
   * Aborts when the lease is lost, or when the run has ended as a failure, such as by a time limit that answered in the
   * handler's place: somebody else may run now, so stop.
   */
  readonly signal: AbortSignal
  /** Call it before the irrevocable step: any failure after it leaves the outcome unknown instead of failed. */
  readonly mayHaveEffect: () => void
  /**
   * A stable key (a UUID, RFC 9562 version 8) for a call to another service: the same for every attempt with the same
   * scope, key, fingerprint and label, so that the other side removes the duplicate that no lease can.
   *
   * @example await bank.transfer(order, { idempotencyKey: req.idempotency.deriveKey('bank transfer') })
   * @throws IdempotencyError `label_invalid` for an empty label; nothing changed.
   */
  readonly deriveKey: (label: string) => string
}

/** What a context shows of a run. */
interface RunInHand {
  readonly identity: Identity
  readonly attempt: number
  readonly previousOutcome: PreviousOutcome
  readonly signal: AbortSignal
  mayHaveEffect(): void
}

/**
 * What a handler gets of its run: nothing that could end it. Getters are shared, and functions are made when somebody asks, so
 * `const { deriveKey } = req.idempotency` works: functions of each context's own would keep the run in V8's old space.
 */
export class HandlerContext implements IdempotencyContext {
  readonly key: string
  readonly scope: string
  readonly attempt: number
  readonly previousOutcome: PreviousOutcome
  declare readonly signal: AbortSignal
  /** No private field: whoever looks through a Proxy, or at a copy, is given the signal too. */
  declare readonly [RUN]: RunInHand

  constructor(run: RunInHand) {
    this.key = run.identity.key
    this.scope = run.identity.scope
    this.attempt = run.attempt
    this.previousOutcome = run.previousOutcome
    Object.defineProperty(this, RUN, { value: run })
    Object.defineProperty(this, 'signal', SIGNAL)
  }

  get mayHaveEffect(): () => void {
    const run = this[RUN]
    return () => run.mayHaveEffect()
  }

  get deriveKey(): (label: string) => string {
    const { identity } = this[RUN]
    return (label) => derivedKey(identity, label)
  }
}

/** Where a context holds its run: for an ES module and a CommonJS copy of the library as well. */
export const RUN = Symbol.for('once-per-key: run')

/** Gives the context of a binding's own the run of the context that it was made from: a store takes either for a transaction. */
export function carryRun<Context extends object>(from: IdempotencyContext, to: Context): Context {
  return Object.defineProperty(to, RUN, { value: (from as HandlerContext)[RUN] })
}

/** What a store needs of a context, to act for its run: `req.idempotency`, or what handlers of events and jobs receive. */
export type ActingContext = Pick<IdempotencyContext, 'attempt' | 'previousOutcome' | 'signal'>

/** One pair of accessors for all: V8 keeps such a pair among its old objects. */
const SIGNAL = {
  get(this: HandlerContext) {
    return this[RUN].signal
  },
  enumerable: true,
  configurable: true,
}
