/** Words by which statements of the store are found on the wire: of each command, or each statement inside a transaction, those that no other one has. */
export const IN_STATEMENT = {
  begin: 'claimed AS (',
  /** Of an inspection, and of whatever reads before it writes. */
  read: 'records r ON r.id',
  renew: 'pg_catalog.+) 1, lease_until =',
  complete: "records t SET state = 'completed'",
  /** What a release, a step, a resolution or a take-over writes over the row that it has read. */
  update: 'records t SET format =',
  fence: 'pg_try_advisory_xact_lock_shared(',
  /** Alone, or as a part of `enter`. */
  mark: 'END AS mark',
  lockOfStep: 'DO UPDATE SET uncertain = 1',
  /** Of a transaction, and by hand. */
  completion: "DO UPDATE SET state = 'completed'",
  enter: 'pg_try_advisory_xact_lock(',
  readEntered: 'END AS found',
  finish: "'operation_taken'",
} as const
