import type { Books, Kind } from './ledger.js'
import type { Context, Operation } from './operation.js'

/** What the latest lists of samples refer to; its only entry has the id `all`. */
export interface SampleLists {
  readonly id: 'all'
  /** The oldest first. */
  readonly lists: readonly (readonly Seed[])[]
}

/** An entry that was created so that a sample can name it. */
type Seed = readonly [kind: Kind, id: string]

/** Pages that are open at the same time each work with a list of their own. */
const MOST_LISTS = 32

/**
 * A body for each operation that works right now. What the bodies name is created first, and kept for the latest lists
 * alone: however often they are asked for, the books do not grow.
 */
export async function samplesOf(
  operations: readonly Operation[],
  { books, now }: Context,
): Promise<readonly Readonly<Record<string, unknown>>[]> {
  const seeds: Seed[] = []
  const context = { books: notingWrites(books, seeds), now }
  const samples = await Promise.all(operations.map((each) => each.sample(context)))
  const lists = [...((await books.get('sampleLists', 'all'))?.lists ?? []), seeds]
  for (const [kind, id] of lists.slice(0, -MOST_LISTS).flat()) books.delete(kind, id)
  books.put('sampleLists', { id: 'all', lists: lists.slice(-MOST_LISTS) })
  return samples as Record<string, unknown>[]
}

function notingWrites(books: Books, seeds: Seed[]): Books {
  return {
    get: (kind, id) => books.get(kind, id),
    put(kind, entry) {
      seeds.push([kind, entry.id])
      books.put(kind, entry)
    },
    delete: (kind, id) => books.delete(kind, id),
  }
}
