import type { ClientOf } from './client-on-trial.js'

type Recipe = typeof import('../../recipes/transactions/postgres-js.js')

export async function open(): Promise<ClientOf<Recipe>> {
  const { sql, storeSql, store, transactions } = await import('../../recipes/transactions/postgres-js.js')
  return {
    store,
    transactions,
    isolation: {
      'repeatable read': 'isolation level repeatable read',
      serializable: 'isolation level serializable',
    },
    query: (tx, text) => tx.unsafe(text),
    savepoint: (tx, work) => tx.savepoint(work),
    sqlStateOf: (error) => (error as { code?: unknown }).code,
    endsTheProcess: true,
    close: () => Promise.all([sql.end({ timeout: 0 }), storeSql.end({ timeout: 0 })]),
  }
}
