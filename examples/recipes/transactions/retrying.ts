import type { PostgresTransactions } from 'once-per-key/postgres'

/** Opens a transaction again, up to three times, where the database has undone it for the sake of another one. */
export function retrying<Tx, Options>(
  { transaction, run }: PostgresTransactions<Tx, Options>,
  sqlStateOf: (error: unknown) => unknown,
): PostgresTransactions<Tx, Options> {
  return {
    run,
    async transaction(work, options) {
      for (let tries = 1; ; tries++) {
        try {
          return await transaction(work, options)
        } catch (error) {
          const isUndone = ['40001', '40P01'].includes(String(sqlStateOf(error))) // serialization failure, deadlock
          if (!isUndone || tries === 3) throw error
        }
      }
    },
  }
}
