export type { WithAllowEmpty, WithResult } from '../../src/core/index.js'
export type {
  ClientTransactions,
  PoolTransactionOptions,
  TransactionOptionsOf,
  TxOfFunctions,
} from '../sql/client-transactions.js'
export * from '../sql/every-sql-store.js'
export type { SqlStore } from '../sql/sql-store.js'
export type { PostgresConnection, PostgresPool, PostgresQuery } from './client.js'
export { PostgresStoreError, type PostgresStoreErrorCode } from './errors.js'
export type { PostgresStoreOptions, SchemaOptions } from './options.js'
export { PostgresStore } from './postgres-store.js'
export type { Statement, StatementValue } from './sql.js'
export type { AnyTransactions, PostgresTransactions } from './transactions.js'
