import { machine, toListedRecordIfUnknown } from 'once-per-key/core'
import { mapStore } from '../support/map-store.js'
import { type BrokenStore, broken } from './broken-steps.js'

/** One mistake each in what a walk shows. */
export const BROKEN_LISTS: readonly BrokenStore[] = [
  broken('everything is listed', ['list (completed): skips it', 'list (in-flight, lease live): skips it'], {
    unknown: (record, now) => {
      const shown = machine.inspect(record, now).reply
      return shown && { record: shown, retentionRemainingMs: (record?.expiresAt ?? 0) - now }
    },
  }),
  broken('only failures are listed', ['list (in-flight, lease lapsed): shows the record'], {
    unknown: (record, now) => (record?.state === 'failed' ? toListedRecordIfUnknown(record, now) : null),
  }),
  broken('what has expired is listed', ['list: skips expired records'], {
    unknown: (record, now) => toListedRecordIfUnknown(record && { ...record, expiresAt: now + 7_200_000 }, now),
  }),
  broken('the lease is told as the retention', ['list: shows the rest of the retention'], {
    unknown: (record, now) => {
      const unknown = toListedRecordIfUnknown(record, now)
      return unknown && { ...unknown, retentionRemainingMs: 0 }
    },
  }),
  {
    breaks: 'a walk never ends',
    foundBy: ['list: a walk lists all of them, and ends', 'list (none): skips it'],
    because: 'A walk ends',
    open: (now) => ({ ...mapStore(now), list: async () => ({ records: [], next: 'on' }) }),
  },
]
