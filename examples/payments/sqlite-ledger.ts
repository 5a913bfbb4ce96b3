import { type SqliteDatabase, type SqliteStore, SqliteStoreError } from 'once-per-key/sqlite'
import { type Books, BooksUnavailable, type Entries, type Kind, type Ledger } from './ledger.js'
import { keptUntilMs, type Notes, notedBooks } from './noted-books.js'

const SCHEMA = `
  CREATE TABLE IF NOT EXISTS payments_books (key TEXT PRIMARY KEY, entry TEXT NOT NULL, kept_until INTEGER) WITHOUT ROWID;
  CREATE INDEX IF NOT EXISTS payments_books_kept_until ON payments_books (kept_until) WHERE kept_until IS NOT NULL`

/**
 * Books in a file of SQLite. Its transactions are synchronous, and the work of an operation is not: so that is done first, and
 * what it wants to write is written if all that it has read is still so. With `withRecord` it is committed together with the
 * record of its key.
 */
export function sqliteLedger(database: SqliteDatabase, store: SqliteStore): Ledger {
  database.exec(SCHEMA)
  const read = database.prepare(
    'SELECT entry FROM payments_books WHERE key = ? AND (kept_until IS NULL OR kept_until > ?)',
  )
  const write = database.prepare('INSERT OR REPLACE INTO payments_books VALUES (?, ?, ?)')
  const remove = database.prepare('DELETE FROM payments_books WHERE key = ?')
  const removeOld = database.prepare('DELETE FROM payments_books WHERE kept_until <= ?')

  const textAt = (key: string) => (read.get(key, Date.now()) as { readonly entry: string } | undefined)?.entry ?? ''

  /** Works until nobody has changed meanwhile what was read; `commit` throws RACE_LOST where somebody has. */
  async function settled<T>(
    merchantId: string,
    work: (books: Books) => Promise<T>,
    commit: (notes: Notes, result: T) => unknown,
  ): Promise<T> {
    const keyOf = (kind: Kind, id: string) => `${merchantId}:${kind}:${id}`
    while (true) {
      const { books, notes } = notedBooks(keyOf, async (key) => textAt(key))
      try {
        const result = await work(books).catch((error) => {
          // A refusal too holds only if what it rests on was true at one moment.
          checkSeen(notes)
          throw error
        })
        await commit(notes, result)
        return result
      } catch (error) {
        if (error !== RACE_LOST) throw inWords(error)
      }
    }
  }

  function checkSeen({ seen }: Notes): void {
    for (const [key, text] of seen) if (textAt(key) !== text) throw RACE_LOST
  }

  /** Inside of a transaction. */
  function writeAll(notes: Notes): void {
    checkSeen(notes)
    for (const [key, entry] of notes.written) {
      if (entry === undefined) remove.run(key)
      else write.run(key, JSON.stringify(entry), keptUntilMs(entry as Entries[Kind]))
    }
    removeOld.run(Date.now())
  }

  function inTransaction(end: 'COMMIT' | 'ROLLBACK', notes: Notes): void {
    database.exec('BEGIN IMMEDIATE')
    try {
      writeAll(notes)
      database.exec(end)
    } catch (error) {
      database.exec('ROLLBACK')
      throw error
    }
  }

  return {
    transaction: (merchantId, work) => settled(merchantId, work, (notes) => inTransaction('COMMIT', notes)),

    withRecord: {
      answered: (context, merchantId, work, answer) =>
        settled(merchantId, work, (notes, result) =>
          store.transaction(context, () => {
            writeAll(notes)
            answer(result)
          }),
        ),

      /** SQLite has one writer: a transaction that stayed open would hold up all others. */
      async abandoned(merchantId, work, untilDeath) {
        await settled(merchantId, work, (notes) => inTransaction('ROLLBACK', notes))
        await untilDeath()
      },
    },
  }
}

const RACE_LOST = new Error('Another transaction was faster')

/** Of an error of the database only the words. */
function inWords(error: unknown): unknown {
  const { code } = error as { readonly code?: unknown }
  const isOfDatabase = error instanceof SqliteStoreError || /^(ERR_)?SQLITE/.test(`${code}`)
  return isOfDatabase ? new BooksUnavailable((error as Error).message, true) : error
}
