import { IsolationLevel } from '@mikro-orm/postgresql'
import type { ClientOf } from './client-on-trial.js'

type Recipe = typeof import('../../recipes/transactions/mikro-orm.js')

export async function open(): Promise<ClientOf<Recipe>> {
  const { orm, pool, store, transactions } = await import('../../recipes/transactions/mikro-orm.js')
  return {
    store,
    transactions,
    isolation: {
      'repeatable read': { isolationLevel: IsolationLevel.REPEATABLE_READ },
      serializable: { isolationLevel: IsolationLevel.SERIALIZABLE },
    },
    query: (em, text) => em.execute(text),
    savepoint: (em, work) => em.transactional(work),
    commit: (tx) => tx.commit(),
    sqlStateOf: (error) => (error as { code?: unknown }).code,
    endsTheProcess: false,
    close: () => Promise.all([orm.close(), pool.end()]),
  }
}
