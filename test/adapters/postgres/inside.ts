import type { PoolClient } from 'pg'
import { InTransaction } from '../../../adapters/postgres/in-transaction.js'
import { type Statement, statementsOf } from '../../../adapters/postgres/statements.js'

/** The statements of runs in transactions that the test opens itself, over a client that sends them so. */
export function insideOf(
  run: (tx: PoolClient, statement: Statement) => Promise<unknown>,
): InTransaction<PoolClient, unknown> {
  const transaction = () => Promise.reject(new Error('The test opens its transactions itself.'))
  return new InTransaction<PoolClient, unknown>({ run, transaction }, statementsOf('once_per_key'), 'once_per_key')
}
