import type { PoolClient } from 'pg'
import { PostgresDatabase } from '../../../adapters/postgres/database.js'
import { PostgresStoreError } from '../../../adapters/postgres/errors.js'
import { PostgresTransactionStatements } from '../../../adapters/postgres/in-transaction.js'
import { PostgresRecordTable } from '../../../adapters/postgres/record-table.js'
import type { Statement } from '../../../adapters/postgres/sql.js'
import { toTransactionRunner } from '../../../adapters/postgres/transactions.js'
import { PoolTurns } from '../../../adapters/sql/clients.js'

/** The statements of runs in transactions that the test opens itself, over a client that sends them so. */
export function insideOf(
  run: (tx: PoolClient, statement: Statement) => Promise<unknown>,
): PostgresTransactionStatements {
  const transaction = () => Promise.reject(new Error('The test opens its transactions itself.'))
  const turns = new PoolTurns('max', PostgresStoreError)
  const database = new PostgresDatabase({ query: transaction }, 'once_per_key', turns, false)
  const given = { run: run as (tx: unknown, statement: Statement) => Promise<unknown>, transaction }
  const client = toTransactionRunner(given, false)
  return new PostgresTransactionStatements(client, new PostgresRecordTable(database, 'once_per_key'), 'once_per_key')
}
