// Without any driver's types: a database of one's own.
import type { IdempotencyContext } from 'once-per-key'
import {
  type SqliteDatabase,
  SqliteStore,
  SqliteStoreError,
  type SqliteStoreErrorCode,
  type SqliteStoreOptions,
} from 'once-per-key/sqlite'

export declare const database: SqliteDatabase
export const options: SqliteStoreOptions[] = [
  { database },
  { database, prefix: 'payouts_', busyTimeoutMs: 500, sweeps: false, now: () => Date.now() },
  { database, prefix: undefined },
]
export const store = new SqliteStore({ database })
export const swept: Promise<number> = store.sweep()
export const migrated: Promise<void> = store.migrate()

export function isFull(error: unknown): boolean {
  const code: SqliteStoreErrorCode | undefined = error instanceof SqliteStoreError ? error.code : undefined
  // @ts-expect-error no such code
  return code === 'database_full' || code === 'nonsense'
}

export async function pay(context: IdempotencyContext): Promise<void> {
  const id: number = await store.transaction(context, (tx) => {
    tx.exec("INSERT INTO payouts VALUES ('p1')")
    return 7
  })
  await store.step(context, 'reserve', (tx) => void tx.exec(`UPDATE payouts SET number = ${id}`))
  // @ts-expect-error a promise: the work is synchronous
  await store.transaction(context, async (tx) => tx.exec('DELETE FROM payouts'))
  // @ts-expect-error likewise
  await store.step(context, 'reserve', () => Promise.resolve())
}

// @ts-expect-error a database is required
new SqliteStore({})
// @ts-expect-error no database
new SqliteStore({ database: 'payments.db' })
// @ts-expect-error no such option
new SqliteStore({ database, file: 'payments.db' })
