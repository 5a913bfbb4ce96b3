import type { InFlight, StoredRecord } from './record-columns.js'

/** Why a run may not complete a record in a transaction. */
interface NotOwned {
  readonly code: 'record_absent' | 'record_taken' | 'record_ended'
  readonly message: string
}

/** @throws the store's error unless the record is in flight, and has this token. */
export function owned(
  record: StoredRecord | null,
  token: string,
  StoreError: new (code: NotOwned['code'], message: string) => Error,
): InFlight {
  const fault = whyNotOwned(record, token)
  if (fault !== null) throw new StoreError(fault.code, fault.message)
  return record as InFlight
}

function whyNotOwned(record: StoredRecord | null, token: string): NotOwned | null {
  if (record === null) return ABSENT
  if (record.token !== token) {
    return { code: 'record_taken', message: 'This run lost its lease, and another attempt owns the record.' }
  }
  return record.state === 'in-flight' ? null : { code: 'record_ended', message: 'This run has already ended.' }
}

export const ABSENT: NotOwned = {
  code: 'record_absent',
  message:
    'There is no record of this run in the database: its retention has ended, or the transaction uses another database than ' +
    'the store.',
}

/** For a transaction that was opened for a run. */
export const NOTHING_WRITTEN_INSIDE =
  'Nothing was written in this transaction, so it was rolled back. Probably the writes went over another connection, and stay: use ' +
  'the `tx` that the work received. Or there was nothing to write, such as an UPDATE that matched no row: then give `transaction` the ' +
  'option `allowEmpty: true`.'
