import type { Books } from './ledger.js'

/** What the operation of a key has done; it stands in the books from the moment of the effect itself. */
export interface Outcome {
  readonly id: string
  readonly result: object
  readonly keptUntil: string
}

/** Longer than the record of any key: that lives for 24 hours after a run, which takes 15 minutes at most. */
const KEPT_MS = 25 * 3_600_000

/**
 * Runs an operation, or finds what it has done. The effect and its outcome are one transaction: an owner that dies behind
 * it, before its answer is stored, has left both, and the attempt that takes over answers from there. An owner that only
 * stalled may wake up and meet the outcome of the other: so every attempt looks, whatever its `previousOutcome`.
 *
 * `id` is the same for every attempt, and for no other request. Absent: it just runs.
 */
export async function madeOnce<Result extends object>(
  { books, now }: { readonly books: Books; readonly now: Date },
  id: string | undefined,
  make: () => Promise<Result>,
): Promise<Result> {
  if (id === undefined) return make()
  const made = await books.get('outcome', id)
  if (made !== undefined && new Date(made.keptUntil) > now) return made.result as Result
  const result = await make()
  books.put('outcome', { id, result, keptUntil: new Date(now.getTime() + KEPT_MS).toISOString() })
  return result
}
