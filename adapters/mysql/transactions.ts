import {
  type ClientTransactions,
  type PoolTransactionOptions,
  type TxOfFunctions,
  toIsolationSql,
} from '../sql/client-transactions.js'
import { isDemoted, runOnConnection } from '../sql/clients.js'
import {
  getCallbackConnection,
  getCorePool,
  giveBack,
  isPool,
  type MySqlCallbackPool,
  type MySqlConnection,
  type MySqlPool,
  type MySqlPromisePool,
  sendSql,
  sendWithoutLimit,
} from './client.js'
import { isReadOnly } from './errors.js'
import { type Statement, toLiteralSql } from './sql.js'

/**
 * How a client other than `mysql2` opens transactions and runs statements in them: texts with `?`, and `Buffer`s, integers and `null` as
 * values. Not over the client's prepared statements, which know no SAVEPOINT.
 */
export type MySqlTransactions<Tx, Options = unknown> = ClientTransactions<Statement, Tx, Options>

/** The types that the option `transactions` accepts. */
// biome-ignore lint/suspicious/noExplicitAny: the types of whichever client is given are read from it
export type AnyTransactions = MySqlPool | MySqlTransactions<any, any>

/** The type of `tx`; for a pool, its connections. */
export type TxOf<Given> = TxOfFunctions<Given, ConnectionOf<Given>>

type ConnectionOf<Given> = Given extends MySqlPromisePool
  ? Awaited<ReturnType<Given['getConnection']>>
  : Given extends MySqlCallbackPool
    ? Parameters<Parameters<Given['getConnection']>[0]>[1]
    : never

/** How the transactions of a client are opened and used. Those of a pool also tell when their session ends. */
export interface TransactionRunner<Tx = unknown, Options = unknown> extends MySqlTransactions<Tx, Options> {
  /** Resolves when the database ends the session. */
  sessionEnd(tx: Tx): Promise<void> | undefined
}

export function toTransactionRunner(given: AnyTransactions): TransactionRunner {
  return isPool(given) ? createPoolTransactions(given) : createClientTransactions(given)
}

/** Uses the two functions alone, whatever else the application's object has. */
function createClientTransactions(client: MySqlTransactions<unknown>): TransactionRunner {
  return {
    transaction: (work, options) => client.transaction(work, options),
    run: (tx, statement) => client.run(tx, statement),
    sessionEnd: () => undefined,
  }
}

function createPoolTransactions(pool: MySqlPool): TransactionRunner<object, PoolTransactionOptions> {
  const ends = new WeakMap<object, Promise<void>>()
  return {
    run(tx, statement) {
      // The application decides how long it waits in a transaction of its own.
      const send = ends.has(tx) ? sendSql : sendWithoutLimit
      return send(unwrapConnection(tx), toLiteralSql(statement))
    },
    sessionEnd: (tx) => ends.get(tx),

    async transaction(work, options) {
      const isolation = toIsolationSql(options)
      const tx = await takePoolConnection(pool)
      const connection = unwrapConnection(tx)
      const end = watchConnectionEnd(connection)
      ends.set(tx, end.promise)
      const workInside = async () => {
        if (isolation !== undefined) await sendSql(connection, `SET TRANSACTION ISOLATION LEVEL ${isolation}`)
        await sendSql(connection, SWITCH_AUTOCOMMIT_OFF_SQL)
        await sendSql(connection, 'START TRANSACTION')
        await work(tx)
        await sendSql(connection, 'COMMIT')
        void sendSql(connection, RESTORE_AUTOCOMMIT_SQL).catch(() => connection.destroy()) // It comes before anything else on the connection.
      }
      const isGoodAfterError = (error: unknown) => rollBackIfPossible(connection, error)
      await runOnConnection(connection, workInside, isGoodAfterError, (isGood) => {
        end.close()
        ends.delete(tx)
        giveBack(connection, isGood)
      })
    },
  }
}

/** As the application's pool gives them out. */
async function takePoolConnection(pool: MySqlPool): Promise<object> {
  const core = getCorePool(pool)
  return core === pool ? getCallbackConnection(core) : (pool as MySqlPromisePool).getConnection()
}

/** That of callbacks, which one of promises wraps. */
function unwrapConnection(tx: object): MySqlConnection {
  const { connection, promise } = tx as { readonly connection?: MySqlConnection; readonly promise?: unknown }
  return typeof promise === 'function' || connection === undefined ? (tx as MySqlConnection) : connection
}

function watchConnectionEnd(connection: MySqlConnection): { readonly promise: Promise<void>; close(): void } {
  let onEnd!: () => void
  const promise = new Promise<void>((resolve) => {
    onEnd = resolve
  })
  connection.on('error', onEnd)
  return { promise, close: () => void connection.off('error', onEnd) }
}

/** Whether the rollback is certain, and the session as it was: if not, the connection is closed, and the database rolls back. */
async function rollBackIfPossible(connection: MySqlConnection, error: unknown): Promise<boolean> {
  if ((error as { readonly fatal?: unknown } | null)?.fatal === true) return false
  if (isDemoted(connection, isReadOnly(error))) return false
  try {
    await sendSql(connection, 'ROLLBACK')
    await sendSql(connection, 'UNLOCK TABLES') // A ROLLBACK leaves what the work has locked by LOCK TABLES.
    await sendSql(connection, RESTORE_AUTOCOMMIT_SQL)
    return true
  } catch {
    return false
  }
}

/**
 * A deadlock ends the transaction: where the work catches its error and goes on, what it writes then must not be committed one
 * statement at a time.
 */
const SWITCH_AUTOCOMMIT_OFF_SQL = 'SET @once_per_key = @@autocommit, autocommit = 0'
const RESTORE_AUTOCOMMIT_SQL = "SET autocommit = IF(CAST(@once_per_key AS CHAR) = '0', 0, 1)"
