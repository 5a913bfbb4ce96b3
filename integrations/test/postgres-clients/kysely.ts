import { CompiledQuery, sql } from 'kysely'
import type { ClientOf } from './client-on-trial.js'

type Recipe = typeof import('../../recipes/transactions/kysely.js')

export async function open(): Promise<ClientOf<Recipe>> {
  const { db, pool, store, transactions } = await import('../../recipes/transactions/kysely.js')
  return {
    store,
    transactions,
    isolation: { 'repeatable read': 'repeatable read', serializable: 'serializable' },
    query: (tx, text) => tx.executeQuery(CompiledQuery.raw(text)),
    // Its own savepoints need a transaction that is controlled by hand.
    async savepoint(tx, work) {
      await sql`SAVEPOINT undo`.execute(tx)
      try {
        await work(tx)
        await sql`RELEASE SAVEPOINT undo`.execute(tx)
      } catch (error) {
        await sql`ROLLBACK TO SAVEPOINT undo`.execute(tx)
        throw error
      }
    },
    sqlStateOf: (error) => (error as { code?: unknown }).code,
    endsTheProcess: false,
    close: () => Promise.all([db.destroy(), pool.end()]),
  }
}
