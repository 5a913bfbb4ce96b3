import type { PoolClient } from 'pg'
import { PostgresTransactionStatements } from '../../../adapters/postgres/in-transaction.js'
import { createStatements, type Statement } from '../../../adapters/postgres/statements.js'

/** The statements of runs in transactions that the test opens itself, over a client that sends them so. */
export function insideOf(
  run: (tx: PoolClient, statement: Statement) => Promise<unknown>,
): PostgresTransactionStatements<PoolClient, unknown> {
  const transaction = () => Promise.reject(new Error('The test opens its transactions itself.'))
  return new PostgresTransactionStatements<PoolClient, unknown>(
    { run, transaction },
    createStatements('once_per_key'),
    'once_per_key',
  )
}
