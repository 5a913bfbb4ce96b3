// Without any client's package: a query of one's own.
import {
  type PostgresPool,
  type PostgresQuery,
  PostgresStore,
  PostgresStoreError,
  type PostgresStoreErrorCode,
  type PostgresStoreOptions,
  type PostgresTransactions,
} from 'once-per-key/postgres'

const query: PostgresQuery = async (text, values) => ({ rows: [{ text, values }] })
export const options: PostgresStoreOptions[] = [{ query }, { query, schema: 'payouts', sweeps: false }]
export const store = new PostgresStore({ query })
export const sql: string = PostgresStore.schemaSql({ schema: 'payouts' })
export const swept: Promise<number> = store.sweep()
export const migrated: Promise<void> = store.migrate()
export declare const pool: PostgresPool
new PostgresStore({ pool, schema: undefined })

export function isMissing(error: unknown): boolean {
  const code: PostgresStoreErrorCode | undefined = error instanceof PostgresStoreError ? error.code : undefined
  // @ts-expect-error no such code
  return code === 'schema_missing' || code === 'nonsense'
}

// @ts-expect-error a pool or a query is required
new PostgresStore({})
// @ts-expect-error one of the two
new PostgresStore({ pool, query })
// @ts-expect-error not a pool
new PostgresStore({ pool: 'postgres://localhost' })
// @ts-expect-error no such option
new PostgresStore({ query, schemaName: 'payouts' })
// @ts-expect-error a promise of the rows
new PostgresStore({ query: () => [] })

/** The transaction of some client. */
interface Theirs {
  send(text: string, values: readonly unknown[]): Promise<unknown>
}
declare const tx: Theirs
declare function open(work: (tx: Theirs) => Promise<void>, level?: string): Promise<void>

/** With the type of `tx` at `run`, at the work, and of both from the outside. */
export const declared = [
  new PostgresStore({
    query,
    transactions: {
      transaction: (work, level?: string) => open(work, level),
      run: (tx: Theirs, { text, values }) => tx.send(text, values),
    },
  }),
  new PostgresStore({
    query,
    transactions: {
      transaction: (work: (tx: Theirs) => Promise<void>, level?: string) => open(work, level),
      run: (tx, { text, values }) => tx.send(text, values),
    },
  }),
] as const
export const transactions: PostgresTransactions<Theirs, string> = {
  transaction: (work, level) => open(work, level),
  run: (tx, { text, values }) => tx.send(text, values),
}
for (const theirs of [...declared, new PostgresStore({ query, transactions })]) {
  theirs.transaction(undefined, (tx) => tx.send('SELECT 1', []), 'serializable')
  theirs.step(undefined, 'reserve', async (tx) => void (await tx.send('SELECT 1', [])))
  // @ts-expect-error what a client returns is no JSON
  theirs.step(undefined, 'reserve', (tx) => tx.send('SELECT 1', []))
  // @ts-expect-error not of that client
  theirs.transaction(undefined, (tx) => tx.query('SELECT 1'))
  // @ts-expect-error not of that client
  theirs.step(undefined, 'reserve', (tx) => tx.query('SELECT 1'))
  // @ts-expect-error not of that client
  theirs.completeIn({ query }, undefined, { status: 201 })
  // @ts-expect-error no level
  theirs.transaction(undefined, (tx) => tx.send('SELECT 1', []), 7)
  theirs.completeIn(tx, undefined, { status: 201, body: { id: 1 } })
  // @ts-expect-error a result is no answer, unless it is said to be
  theirs.completeIn(tx, undefined, { id: 1 })
  theirs.completeIn<{ id: number }>(tx, undefined, { id: 1 })
  // @ts-expect-error not that result
  theirs.completeIn<{ id: number }>(tx, undefined, { id: 'one' })
}
