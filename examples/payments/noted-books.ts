import type { Books, Entries, Kind } from './ledger.js'

/** What a transaction has read and wants to write, by the keys of its entries. Absent is ''. */
export interface Notes {
  readonly seen: ReadonlyMap<string, string>
  readonly written: ReadonlyMap<string, Entries[Kind] | undefined>
}

/**
 * Books for an optimistic transaction: it notes what it reads, and its writes take place in one step, or not at all if any
 * of it has changed: then the work is done again. So `work` touches nothing but the books.
 */
export function notedBooks(
  keyOf: (kind: Kind, id: string) => string,
  textAt: (key: string) => Promise<string>,
): { readonly books: Books; readonly notes: Notes } {
  const seen = new Map<string, string>()
  const written = new Map<string, Entries[Kind] | undefined>()
  const books: Books = {
    async get<K extends Kind>(kind: K, id: string) {
      const key = keyOf(kind, id)
      if (written.has(key)) return written.get(key) as Entries[K] | undefined
      const text = seen.get(key) ?? (await textAt(key))
      seen.set(key, text)
      return text === '' ? undefined : (JSON.parse(text) as Entries[K])
    },
    put: (kind, entry) => written.set(keyOf(kind, entry.id), entry),
    delete: (kind, id) => written.set(keyOf(kind, id), undefined),
  }
  return { books, notes: { seen, written } }
}

/** Until when an entry is kept, in ms since 1970; `null`: for good. */
export function keptUntilMs(entry: Entries[Kind]): number | null {
  return 'keptUntil' in entry ? Date.parse(entry.keptUntil) : null
}
