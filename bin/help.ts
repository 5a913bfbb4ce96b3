import type { CommandName } from './command-line.js'

const WHERE = `Where the records are, one of:
  --redis URL        redis://…, rediss://…; a cluster by any of its nodes. Needs ioredis
  --postgres URL     postgres://… Needs pg
  --sqlite FILE      Needs better-sqlite3, or node:sqlite
  --store FILE       a module that exports \`store\`: your own, with all its settings (sentinel, TLS, sealed, …)
Without one: ONCE_PER_KEY_REDIS, ONCE_PER_KEY_POSTGRES or ONCE_PER_KEY_SQLITE of the environment, where passwords are safer than
on a command line.
  --prefix TEXT      as the store's (Redis, SQLite)
  --schema NAME      as the store's (Postgres)
  ONCE_PER_KEY_SEALING_KEYS of the environment: the keys of a sealed store, with commas between them`

const EXIT = `Exit code: 0 done; 1 looked at, and not as wanted; 2 wrong command line; 3 the store failed.`

const HELP: Readonly<Record<CommandName, string>> = {
  unknown: `once-per-key unknown [--limit N] [--json]

Lists what awaits an operator: records whose owner died, stalled, or failed in a way that leaves its effect open. The oldest first.
Changes nothing. It walks through all that is kept, in small steps.

  once-per-key unknown --postgres "$DATABASE_URL"
  once-per-key unknown --redis redis://localhost --limit 20 --json`,
  inspect: `once-per-key inspect SCOPE KEY [--namespace NAME] [--show-body] [--json]

Shows the record of a key as it stands. Changes nothing. The body is shown only where it is asked for. Exit code 1: there is no record.

  once-per-key inspect acme order-1001 --redis redis://localhost`,
  resolve: `once-per-key resolve SCOPE KEY --attempt N (--failed | --completed [--status N] [--body TEXT]) [--yes]

Settles an unknown outcome by your word, for the attempt that you looked at: find out first what became of it, and that nothing of it
still runs.
  --failed           it had no effect: the key is free, and the next request runs
  --completed        it had its effect: retries get this answer, or, without --body, 409 answer_not_kept
  --status N         200 to 399, except 307 and 308 (default: 200)
  --body TEXT        JSON, unless --content-type says otherwise
  --yes              do not ask
Exit code 1: nothing was changed, since the record is not what you looked at.

  once-per-key resolve acme order-1001 --attempt 1 --failed --redis redis://localhost
  once-per-key resolve acme order-1001 --attempt 1 --completed --status 201 --body '{"id":"po_7"}' --redis redis://localhost`,
  stats: `once-per-key stats [--json]

Counts records, and those whose outcome is unknown, by a walk through all that is kept.

  once-per-key stats --sqlite payments.db`,
  doctor: `once-per-key doctor [--json]

Looks at the real server, and says what is right (green), what to think about (yellow) and what must be changed (red), each with its
way out. Changes nothing. Exit code 1: something is red.

  once-per-key doctor --redis redis://localhost`,
  schema: `once-per-key schema [--schema NAME]

Prints the SQL of the Postgres store, for a migration tool. Opens nothing.

  once-per-key schema > migrations/once-per-key.sql`,
  migrate: `once-per-key migrate

Creates the tables and functions of the store, or brings them up to date (Postgres, SQLite). Safe to run again.

  once-per-key migrate --postgres "$DATABASE_URL"`,
  seal: `once-per-key seal [--ids]

Prints a new key for sealed answers, and behind it its id. With --ids: the ids of ONCE_PER_KEY_SEALING_KEYS, and no key. Opens nothing.

  once-per-key seal`,
}

const SUMMARY = `once-per-key COMMAND …

  unknown     lists what awaits an operator
  inspect     shows the record of a key
  resolve     settles an unknown outcome
  stats       counts what is kept
  doctor      looks whether the server is set up as records need it
  schema      prints the SQL of the Postgres store
  migrate     creates the tables, or brings them up to date
  seal        makes a key for sealed answers

--help behind a command says more. --json prints JSON, for scripts.`

export function helpOf(command: CommandName | undefined): string {
  if (command === undefined) return [SUMMARY, WHERE, EXIT].join('\n\n')
  const isOffline = command === 'schema' || command === 'seal'
  return [HELP[command], ...(isOffline ? [] : [WHERE]), EXIT].join('\n\n')
}
