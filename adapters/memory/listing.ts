import type { ListedRecord, ListedRecords } from '../../src/core/index.js'
import type { Entry } from './share.js'

/** A whole walk in one step. `show`: `null` for a record that is not listed. */
export function listing(
  places: readonly Iterable<Entry>[],
  show: (entry: Entry) => Omit<ListedRecord, 'key'> | null,
): ListedRecords {
  const records: ListedRecord[] = []
  for (const entries of places) {
    for (const entry of entries) {
      const shown = show(entry)
      if (shown !== null) records.push({ key: entry.key, ...shown })
    }
  }
  return { records, next: null }
}
