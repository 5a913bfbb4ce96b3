import type { SqliteStore } from 'once-per-key/sqlite'
import { ANSWER, claimOf, ownOf } from '../claims.js'

/** Each command, on the key `k`. */
export type Command = (store: SqliteStore) => Promise<unknown>

export const WRITES: Readonly<Record<string, Command>> = {
  begin: (store) => store.begin('k', claimOf('t1')),
  renew: (store) => store.renew('k', { ...ownOf('t1'), leaseMs: 30_000 }),
  complete: (store) => store.complete('k', { ...ownOf('t1'), answer: ANSWER }),
  release: (store) => store.release('k', { ...ownOf('t1'), failedMs: 60_000 }),
}
export const COMMANDS: Readonly<Record<string, Command>> = {
  ...WRITES,
  inspect: (store) => store.inspect('k'),
  resolve: (store) => store.resolve('k', { token: 'o', attempt: 1, answer: ANSWER, retentionMs: 60_000 }),
  list: (store) => store.list(null),
}
