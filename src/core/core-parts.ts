import type { Activity } from './activity.js'
import type { DeadlineQueue } from './deadlines.js'
import type { Duplicates } from './duplicates.js'
import type { ResolvedEngineOptions } from './engine-options.js'
import type { Emit } from './events.js'
import type { SentTerms } from './store.js'
import type { StoreCalls } from './store-calls.js'

/** The parts that the classes of an engine share. */
export interface CoreParts {
  readonly options: ResolvedEngineOptions
  readonly calls: StoreCalls
  /** What all its operations send alike. */
  readonly terms: SentTerms
  readonly deadlines: DeadlineQueue
  readonly activity: Activity
  readonly emit: Emit
  /** Where duplicates wait for a run's end; `undefined`: duplicates do not wait. */
  readonly duplicates: Duplicates | undefined
}
