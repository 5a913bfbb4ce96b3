import { Transaction } from 'sequelize'
import type { ClientOf } from './client-on-trial.js'

type Recipe = typeof import('../../recipes/transactions/sequelize.js')

export async function open(): Promise<ClientOf<Recipe>> {
  const { sequelize, pool, store, transactions } = await import('../../recipes/transactions/sequelize.js')
  return {
    store,
    transactions,
    isolation: {
      'repeatable read': { isolationLevel: Transaction.ISOLATION_LEVELS.REPEATABLE_READ },
      serializable: { isolationLevel: Transaction.ISOLATION_LEVELS.SERIALIZABLE },
    },
    query: (transaction, text) => sequelize.query(text, { transaction }),
    savepoint: (transaction, work) => sequelize.transaction({ transaction }, work),
    commit: (tx) => tx.commit(),
    sqlStateOf: (error) => (error as { parent?: { code?: unknown } }).parent?.code,
    endsTheProcess: false,
    close: () => Promise.all([sequelize.close(), pool.end()]),
  }
}
