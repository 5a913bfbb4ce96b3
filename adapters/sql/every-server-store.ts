export type { WithAllowEmpty, WithResult } from '../../src/core/index.js'
export type {
  ClientTransactions,
  PoolTransactionOptions,
  TransactionOptionsOf,
  TxOfFunctions,
} from './client-transactions.js'
export * from './every-sql-store.js'
export type { SqlStore } from './sql-store.js'
