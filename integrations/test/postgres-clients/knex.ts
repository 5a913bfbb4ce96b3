import type { ClientOf } from './client-on-trial.js'

type Recipe = typeof import('../../recipes/transactions/knex.js')

export async function open(): Promise<ClientOf<Recipe>> {
  const { db, pool, store, transactions } = await import('../../recipes/transactions/knex.js')
  return {
    store,
    transactions,
    isolation: {
      'repeatable read': { isolationLevel: 'repeatable read' },
      serializable: { isolationLevel: 'serializable' },
    },
    query: (tx, text) => tx.raw(text),
    savepoint: (tx, work) => tx.transaction(work),
    commit: (tx) => tx.commit(),
    sqlStateOf: (error) => (error as { code?: unknown }).code,
    endsTheProcess: false,
    close: () => Promise.all([db.destroy(), pool.end()]),
  }
}
