import type { CommandName } from './command-line.js'

const WHERE = `The store, one of:
  --redis URL        redis://… or rediss://…; for a cluster, any of its nodes. Needs ioredis
  --postgres URL     postgres://… Needs pg
  --mysql URL        mysql://…, MariaDB too. Needs mysql2
  --sqlite FILE      Needs better-sqlite3, or node:sqlite
  --store FILE       a module that exports \`store\`, with all its settings (sentinel, TLS, sealed, …)
Otherwise the environment variable ONCE_PER_KEY_REDIS, ONCE_PER_KEY_POSTGRES, ONCE_PER_KEY_MYSQL or ONCE_PER_KEY_SQLITE:
passwords are safer there than on a command line.
  --prefix TEXT      the store's prefix (Redis, MySQL, SQLite)
  --schema NAME      the store's schema (Postgres)
  ONCE_PER_KEY_SEALING_KEYS: environment variable with the keys of a sealed store, separated by commas`

const EXIT = `Exit codes: 0: done. 1: the result is not the expected one. 2: invalid command line. 3: the store failed.`

const HELP: Readonly<Record<CommandName, string>> = {
  unknown: `once-per-key unknown [--limit N] [--json]

Lists the records whose outcome is unknown: the owner died, stalled, or failed after a possible effect. Oldest first. Changes nothing.
It reads all records, in small steps.

  once-per-key unknown --postgres "$DATABASE_URL"
  once-per-key unknown --redis redis://localhost --limit 20 --json`,
  list: `once-per-key list --scope SCOPE [--namespace NAME] [--limit N] [--json]

Lists the records of a scope, and which of them have an answer that forget would erase. Oldest first. Changes nothing.
It reads all records, in small steps.
Exit code 1: some could not be read.

  once-per-key list --scope acme --redis redis://localhost`,
  inspect: `once-per-key inspect SCOPE KEY [--namespace NAME] [--path PATH] [--derive LABEL] [--show-body] [--json]

Shows the current record of a key. Changes nothing. Shows the body only with --show-body.
  --namespace NAME   where the key is no request's: run.NAME for a runner of that name, webhook for an event
  --path PATH        the path that the key belongs to, with a profile whose keys belong to one
  --derive LABEL     shows the key that deriveKey(LABEL) gave to the handler, to look for at the bank
Exit code 1: there is no record, or none from which a key can be derived.

  once-per-key inspect acme order-1001 --redis redis://localhost
  once-per-key inspect acme order-1001 --derive 'bank transfer' --redis redis://localhost`,
  resolve: `once-per-key resolve SCOPE KEY --attempt N (--failed | --completed [--status N] [--body TEXT] | --rerun) [--yes]

Settles the unknown outcome of the attempt that you inspected. First find out whether it had its effect, and make sure that it does not
run any more.
  --failed           it had no effect: the key is free, and the next request runs. Recorded steps are forgotten and run again
  --completed        it had its effect: retries get this answer, or, without --body, 409 answer_not_kept
  --rerun            it is not known, and may go on: the next request goes on after the recorded steps, and is told that the outcome is
                     unknown, even if the service refuses unknown outcomes
  --status N         200 to 399, except 307 and 308 (default: 200)
  --body TEXT        JSON, unless --content-type says otherwise
  --yes              do not ask
Exit code 1: nothing was changed, because the record has changed since you inspected it.

  once-per-key resolve acme order-1001 --attempt 1 --failed --redis redis://localhost
  once-per-key resolve acme order-1001 --attempt 1 --completed --status 201 --body '{"id":"po_7"}' --redis redis://localhost`,
  forget: `once-per-key forget --scope SCOPE [--namespace NAME] [--dry-run] [--yes] [--json]
once-per-key forget --scope SCOPE --key KEY [--namespace NAME] [--remove] [--dry-run] [--yes] [--json]

Erases the stored answers of a scope, or of one key. The keys stay used: nothing runs again, and a retry gets 409 answer_not_kept.
What runs, and what has an unknown outcome, is left, and counted. It reads all records, in small steps; repeat it as often as you like.
  --remove           removes the record of the key: the key is new, and the next request with it runs
  --dry-run          changes nothing, and counts
  --yes              do not ask
Exit code 1: something was left.

  once-per-key forget --scope acme --dry-run --redis redis://localhost
  once-per-key forget --scope acme --redis redis://localhost
  once-per-key forget --scope acme --key order-1001 --remove --postgres "$DATABASE_URL"`,
  stats: `once-per-key stats [--json]

Counts the records, and those whose outcome is unknown. It reads all records, in small steps.

  once-per-key stats --sqlite payments.db`,
  doctor: `once-per-key doctor [--json]

Checks the server and its settings: green is right, yellow may need a change, red must be changed; each says what to do. Changes
nothing. Exit code 1: something is red.

  once-per-key doctor --redis redis://localhost`,
  schema: `once-per-key schema [--for postgres | mysql] [--schema NAME | --prefix TEXT]

Prints the SQL of the Postgres store, or of that for MySQL and MariaDB, for a migration tool. Connects to nothing.

  once-per-key schema > migrations/once-per-key.sql`,
  migrate: `once-per-key migrate

Creates or updates the tables and functions of the store (Postgres, MySQL, SQLite). It is safe to run it again.

  once-per-key migrate --postgres "$DATABASE_URL"`,
  seal: `once-per-key seal [--ids]

Prints a new key for sealed answers, followed by its id. With --ids: prints only the ids of ONCE_PER_KEY_SEALING_KEYS. Connects to nothing.

  once-per-key seal`,
}

const SUMMARY = `once-per-key COMMAND …

  unknown     lists the records whose outcome is unknown
  list        lists the records of a scope
  inspect     shows the record of a key
  resolve     settles an unknown outcome
  forget      erases stored answers
  stats       counts the records
  doctor      checks the server and its settings
  schema      prints the SQL of the Postgres or MySQL store
  migrate     creates or updates the tables
  seal        generates a key for sealed answers

once-per-key COMMAND --help explains a command. --json prints JSON, for scripts. once-per-key --version prints the version.`

export function buildHelp(command: CommandName | undefined): string {
  if (command === undefined) return [SUMMARY, WHERE, EXIT].join('\n\n')
  const isOffline = command === 'schema' || command === 'seal'
  return [HELP[command], ...(isOffline ? [] : [WHERE]), EXIT].join('\n\n')
}
