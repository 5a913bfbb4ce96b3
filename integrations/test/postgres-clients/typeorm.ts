import type { ClientOf } from './client-on-trial.js'

type Recipe = typeof import('../../recipes/transactions/typeorm.js')

export async function open(): Promise<ClientOf<Recipe>> {
  const { dataSource, pool, store, transactions } = await import('../../recipes/transactions/typeorm.js')
  return {
    store,
    transactions,
    isolation: { 'repeatable read': 'REPEATABLE READ', serializable: 'SERIALIZABLE' },
    query: (manager, text) => manager.query(text),
    savepoint: (manager, work) => manager.transaction(work),
    commit: (tx) => tx.queryRunner?.commitTransaction(),
    sqlStateOf: (error) => (error as { driverError?: { code?: unknown } }).driverError?.code,
    endsTheProcess: false,
    close: () => Promise.all([dataSource.destroy(), pool.end()]),
  }
}
