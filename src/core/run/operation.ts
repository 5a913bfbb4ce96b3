import type { Activity } from '../calls/awaited.js'
import type { Sender } from '../calls/store-call.js'
import type { StoreCalls } from '../calls/store-calls.js'
import type { Emit } from '../events/events.js'
import type { ResolvedEngineOptions } from '../options/engine-options.js'
import { buildStorageKey, buildStorageScope, type Identity, SINGLE_TENANT } from '../record/identity.js'
import type { Answer } from '../record/record.js'
import { createToken } from '../record/token.js'
import type { SentOperation, SentTerms } from '../store.js'
import type { Duplicates } from './duplicates.js'

/**
 * - `claiming`: its claim is on its way, or it waits for another owner. Next: `running`; or it is refused, and dropped.
 * - `running`: its handler runs. Next: `ending`; or `over`, if its time has ended before.
 * - `ending`: its first end is being stored. Next: `over`.
 * - `over`: the store has replied, or its time has ended; a renewal may still be unanswered. Next: `ended`.
 * - `ended`: nothing of it is pending, and its last event was told.
 */
type OperationState = 'claiming' | 'running' | 'ending' | 'over' | 'ended'

/**
 * One operation, from its claim to its end: what identifies it, what it sends to the store, and how far it is. Methods
 * are on the prototype: functions of each operation would keep it, and everything that they reference, in V8's old space.
 */
export class Operation implements Sender {
  readonly identity: Identity
  readonly recordKey: string
  readonly token: string
  readonly scope: string
  /** As returned by the store; 0: its claim is not confirmed, so nothing prevents another attempt at the same time. */
  attempt = 0
  uncertain = false
  answer: Answer | null = null
  failure: SentOperation['failure'] = null
  protected readonly core: CoreParts
  #state: OperationState = 'claiming'

  constructor(identity: Identity, core: CoreParts) {
    this.identity = identity
    this.core = core
    const scope = buildStorageScope(identity)
    this.scope = identity.isOnlyScope === true ? SINGLE_TENANT : scope
    this.recordKey = buildStorageKey(identity, scope)
    this.token = createToken()
  }

  get fingerprint(): string {
    return this.identity.fingerprint
  }

  get terms(): SentTerms {
    return this.core.terms
  }

  get options(): ResolvedEngineOptions {
    return this.core.options
  }

  get state(): OperationState {
    return this.#state
  }

  /** The only place that changes the state. */
  protected become(state: OperationState): void {
    this.#state = state
  }
}

/** The parts that the classes of an engine share. */
export interface CoreParts {
  readonly options: ResolvedEngineOptions
  readonly calls: StoreCalls
  /** What all its operations send alike. */
  readonly terms: SentTerms
  readonly activity: Activity
  readonly emit: Emit
  /** Whether anybody hears what happens to each request; if not, those events are not made. */
  readonly isHeard: () => boolean
  /** Where duplicates wait for a run's end; `undefined`: duplicates do not wait. */
  readonly duplicates: Duplicates | undefined
}
