import type { StoreEvent } from '../../src/core/index.js'

const EVERY_MS = 10_000

/** Reports commands that wait for a connection, at most each ten seconds. `most`: the client's name of the size of a pool. */
export function waitingReport(emit: (event: StoreEvent) => void, most: string): (waiting: number) => void {
  const advice =
    `Give the store its own pool, from which no handler takes connections. If it has one, raise its \`${most}\`, and find out ` +
    'what keeps the database busy.'
  let reportedAt = Number.NEGATIVE_INFINITY
  return (waiting) => {
    const now = performance.now()
    if (now < reportedAt + EVERY_MS) return
    reportedAt = now
    emit({ type: 'connections_exhausted', waiting, advice })
  }
}
