import type { StoreCalls } from '../calls/store-calls.js'
import type { Activity } from '../calls/timers.js'
import type { Emit } from '../events/events.js'
import type { ResolvedEngineOptions } from '../options/engine-options.js'
import type { SentTerms } from '../store/store.js'
import type { Duplicates } from './duplicates.js'

/** The parts that the runs of an engine share. */
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
