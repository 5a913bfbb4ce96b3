import cluster from 'node:cluster'
import { warnOnce } from '../../src/core/index.js'

export function warnInClusterWorker(): void {
  if (!cluster.isWorker) return
  warnOnce(
    'ONCE_PER_KEY_MEMORY_STORE_IN_CLUSTER',
    'MemoryStore in a node:cluster worker: each worker has its own records, so a retry that reaches another worker ' +
      'runs again. Use RedisStore from once-per-key/redis.',
  )
}
