import { type OptionRule, type OptionTable, optionRules, resolveOptions } from '../../src/core/index.js'
import { findDatabaseFault, type SqliteDatabase } from './client.js'

export interface SqliteStoreOptions<Database extends SqliteDatabase = SqliteDatabase> {
  /**
   * An open `DatabaseSync` of `node:sqlite` (Node 22.13 or later) or `Database` of better-sqlite3, of a file on a local
   * disk. The application opens and closes it.
   */
  readonly database: Database

  /**
   * The prefix of the tables' names. Stores with one prefix share their records. Letters, digits and underscores.
   * @default 'once_per_key_'
   */
  readonly prefix?: string | undefined

  /**
   * How long a command waits for other writers of the file. Less than `storeTimeoutMs`.
   * @default 1_500
   */
  readonly busyTimeoutMs?: number | undefined

  /**
   * Whether each claim removes some expired rows. If not, call `sweep()`.
   * @default true
   */
  readonly sweeps?: boolean | undefined

  /**
   * The clock, the same for all processes that use the file.
   * @default Date.now
   */
  readonly now?: (() => number) | undefined
}

type ReadOptions<Database extends SqliteDatabase> = {
  readonly [Name in keyof SqliteStoreOptions]-?: NonNullable<SqliteStoreOptions<Database>[Name]>
}

/** @throws IdempotencyError `options_invalid`, which lists every mistake. */
export function readOptions<Database extends SqliteDatabase>(
  options: SqliteStoreOptions<Database>,
): ReadOptions<Database> {
  return resolveOptions('SqliteStore', options ?? {}, OPTIONS)
}

/** SQLite reserves `sqlite_`. */
const findPrefixFault: OptionRule = (value) =>
  typeof value === 'string' && /^(?!sqlite_)[a-z_][a-z0-9_]{0,62}$/i.test(value)
    ? null
    : 'letters, digits and underscores, at most 63 of them, that do not begin with sqlite_'

const LONGEST_TIMER_MS = 2 ** 31 - 1

const OPTIONS: OptionTable<ReadOptions<SqliteDatabase>> = {
  database: { rule: findDatabaseFault, isRequired: true },
  prefix: { rule: findPrefixFault, default: 'once_per_key_' },
  busyTimeoutMs: { rule: optionRules.anInteger(0, LONGEST_TIMER_MS), default: 1_500 },
  sweeps: { rule: optionRules.aBoolean, default: true },
  now: { rule: optionRules.aFunction, default: Date.now },
}
