import type { Link, SpanContext } from '@opentelemetry/api'
import { LRUCache } from 'lru-cache'

/** How many runs are remembered. */
const MOST_RUNS = 1_000
/** Clients retry within minutes. */
const LONGEST_MS = 3_600_000

/** The trace that made the answer of a key: only for recent runs of this process, because records do not contain it. */
export class AnsweredBy {
  readonly #traces = new LRUCache<string, SpanContext>({ max: MOST_RUNS, ttl: LONGEST_MS })

  set(name: string, made: SpanContext | undefined): void {
    if (made === undefined) this.#traces.delete(name)
    else this.#traces.set(name, made)
  }

  linkTo(name: string): Link | undefined {
    const made = this.#traces.get(name)
    return made === undefined ? undefined : { context: made }
  }
}
