import type { PostgresStore } from 'once-per-key/postgres'
import type { Pool, PoolClient } from 'pg'
import { type Books, BooksUnavailable, type Entries, type Kind, type Ledger } from './ledger.js'
import { ServiceProblem } from './problems.js'

/** One statement each, safe to run again. */
const SCHEMA = [
  `CREATE TABLE IF NOT EXISTS payments_books (
     merchant text, kind text, id text, entry jsonb NOT NULL, kept_until timestamptz, PRIMARY KEY (merchant, kind, id))`,
  'CREATE INDEX IF NOT EXISTS payments_books_kept_until ON payments_books (kept_until) WHERE kept_until IS NOT NULL',
]

/** Two processes that create a table at once meet in the catalogue: they wait for each other here. */
const LOCK_SCHEMA = "SELECT pg_advisory_xact_lock(hashtextextended('payments_books', 0))"

/**
 * Books in Postgres, that several processes share. What an operation writes is committed together with the record of its
 * key: `withRecord` makes the handler a plain one, insert and answer, without a look at what an earlier attempt may have done.
 */
export async function postgresLedger(pool: Pool, store: PostgresStore<Pool>): Promise<Ledger> {
  await inTransaction(pool, async (tx) => {
    await tx.query(LOCK_SCHEMA)
    for (const statement of SCHEMA) await tx.query(statement)
  })
  return {
    transaction: (merchantId, work) =>
      inTransaction(pool, (tx) => withBooks(tx, merchantId, work)).catch(unlessOfTheService),

    withRecord: {
      answered: (context, merchantId, work, answer) =>
        store
          .transaction(context, async (tx) => {
            const result = await withBooks(tx, merchantId, work)
            answer(result)
            return result
          })
          .catch(unlessOfTheService),

      async abandoned(merchantId, work, untilDeath) {
        const death = new Error('The owner is dead')
        await inTransaction(pool, async (tx) => {
          await withBooks(tx, merchantId, work)
          await untilDeath()
          throw death
        }).catch((error) => {
          if (error !== death) unlessOfTheService(error)
        })
      },
    },
  }
}

async function inTransaction<T>(pool: Pool, work: (tx: PoolClient) => Promise<T>): Promise<T> {
  const tx = await pool.connect()
  let error: unknown
  try {
    await tx.query('BEGIN')
    const result = await work(tx)
    await tx.query('COMMIT')
    return result
  } catch (caught) {
    error = caught
    await tx.query('ROLLBACK').catch(() => {})
    throw caught
  } finally {
    // A connection that failed is closed rather than used again.
    tx.release(error !== undefined && !(error instanceof ServiceProblem))
  }
}

/** Transactions of one merchant do not meet: they wait for each other. What is written is written at the end. */
async function withBooks<T>(tx: PoolClient, merchantId: string, work: (books: Books) => Promise<T>): Promise<T> {
  await tx.query('SELECT pg_advisory_xact_lock(hashtextextended($1, 1))', [merchantId])
  const written = new Map<string, { kind: Kind; id: string; entry: Entries[Kind] | undefined }>()
  const result = await work({
    async get<K extends Kind>(kind: K, id: string) {
      const own = written.get(`${kind} ${id}`)
      if (own !== undefined) return own.entry as Entries[K] | undefined
      const { rows } = await tx.query(
        'SELECT entry FROM payments_books WHERE merchant = $1 AND kind = $2 AND id = $3 AND (kept_until IS NULL OR kept_until > now())',
        [merchantId, kind, id],
      )
      return rows[0]?.entry as Entries[K] | undefined
    },
    put: (kind, entry) => written.set(`${kind} ${entry.id}`, { kind, id: entry.id, entry }),
    delete: (kind, id) => written.set(`${kind} ${id}`, { kind, id, entry: undefined }),
  })
  for (const { kind, id, entry } of written.values()) {
    if (entry === undefined) {
      await tx.query('DELETE FROM payments_books WHERE merchant = $1 AND kind = $2 AND id = $3', [merchantId, kind, id])
    } else {
      const keptUntil = 'keptUntil' in entry ? entry.keptUntil : null
      await tx.query(
        `INSERT INTO payments_books VALUES ($1, $2, $3, $4, $5)
         ON CONFLICT (merchant, kind, id) DO UPDATE SET entry = excluded.entry, kept_until = excluded.kept_until`,
        [merchantId, kind, id, JSON.stringify(entry), keptUntil],
      )
    }
  }
  return result
}

/** Of a client's error only the words. */
function unlessOfTheService(error: unknown): never {
  const isOfClient =
    error instanceof Error && ('severity' in error || error.name === 'PostgresStoreError' || 'syscall' in error)
  if (!isOfClient) throw error
  throw new BooksUnavailable(error.message, true)
}
