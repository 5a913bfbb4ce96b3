// With the types of the drivers: their databases are taken as they are.
import { DatabaseSync } from 'node:sqlite'
import Database from 'better-sqlite3'
import type { IdempotencyContext } from 'once-per-key'
import { SqliteStore } from 'once-per-key/sqlite'

export const stores = [
  new SqliteStore({ database: new DatabaseSync('payments.db') }),
  new SqliteStore({ database: new Database('payments.db') }),
] as const

declare const context: IdempotencyContext

/** Inside a transaction, the database is what it was given as. */
export async function pay(): Promise<void> {
  const [one, other] = stores
  await one.transaction(context, (tx) => tx.prepare('INSERT INTO payouts VALUES (?)').run('p1').changes)
  await other.transaction(context, (tx) => tx.prepare('INSERT INTO payouts VALUES (?)').run('p1').lastInsertRowid)
  await other.transaction(context, (tx) => tx.transaction(() => {})())
}

// @ts-expect-error a statement
new SqliteStore({ database: new DatabaseSync('payments.db').prepare('SELECT 1') })
