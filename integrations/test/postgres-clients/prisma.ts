import { loadRecipe } from '../support/prisma-project.js'
import type { AnyClient } from './client-on-trial.js'

export async function open(): Promise<AnyClient> {
  // biome-ignore lint/suspicious/noExplicitAny: its types are generated
  const { prisma, pool, store, transactions } = await loadRecipe<any>('postgresql')
  return {
    store,
    transactions,
    isolation: {
      'repeatable read': { isolationLevel: 'RepeatableRead' },
      serializable: { isolationLevel: 'Serializable' },
    },
    query: (tx, text) => (/^(SELECT|SHOW)/.test(text) ? tx.$queryRawUnsafe(text) : tx.$executeRawUnsafe(text)),
    savepoint: (tx, work) => tx.$transaction(work),
    sqlStateOf(error) {
      const { meta } = error as { meta?: { driverAdapterError?: unknown } }
      const inner = (meta?.driverAdapterError ?? error) as { cause?: { originalCode?: unknown } }
      return inner.cause?.originalCode
    },
    endsTheProcess: false,
    close: () => Promise.all([prisma.$disconnect(), pool.end()]),
  }
}
