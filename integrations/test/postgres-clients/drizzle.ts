import { sql } from 'drizzle-orm'
import type { ClientOf } from './client-on-trial.js'

type Recipe = typeof import('../../recipes/transactions/drizzle.js')

export async function open(): Promise<ClientOf<Recipe>> {
  const { db, pool, store, transactions } = await import('../../recipes/transactions/drizzle.js')
  return {
    store,
    transactions,
    isolation: {
      'repeatable read': { isolationLevel: 'repeatable read' },
      serializable: { isolationLevel: 'serializable' },
    },
    query: (tx, text) => tx.execute(sql.raw(text)),
    savepoint: (tx, work) => tx.transaction(work),
    sqlStateOf: (error) => (error as { cause?: { code?: unknown } }).cause?.code,
    endsTheProcess: false,
    close: () => Promise.all([db.$client.end(), pool.end()]),
  }
}
