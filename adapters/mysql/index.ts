export type { WithAllowEmpty, WithResult } from '../../src/core/index.js'
export type {
  ClientTransactions,
  PoolTransactionOptions,
  TransactionOptionsOf,
  TxOfFunctions,
} from '../sql/client-transactions.js'
export * from '../sql/every-sql-store.js'
export type { SqlStore } from '../sql/sql-store.js'
export type { MySqlCallbackPool, MySqlPool, MySqlPromisePool } from './client.js'
export { MySqlStoreError, type MySqlStoreErrorCode } from './errors.js'
export { MySqlStore } from './mysql-store.js'
export type { MySqlStoreOptions, SchemaOptions } from './options.js'
export type { Statement, StatementValue } from './sql.js'
export type { AnyTransactions, MySqlTransactions } from './transactions.js'
