import { pathToFileURL } from 'node:url'
import type { Store } from 'once-per-key/core'
import { sealed } from 'once-per-key/sealed'
import { assertNotEmpty, type CommandLine, type CommandName, type Options, UsageError } from './command-line.js'
import { type MySqlTarget, openMySql } from './targets/mysql.js'
import { openPostgres, type PostgresTarget } from './targets/postgres.js'
import { openRedis, type RedisTarget } from './targets/redis.js'
import { type Access, openSqlite, type SqliteTarget } from './targets/sqlite.js'

/** Where the records are: a store, and, where the command opened it itself, the server behind it. */
export type Target = (RedisTarget | PostgresTarget | MySqlTarget | SqliteTarget | ModuleTarget) & {
  readonly store: Store
}

/** What stands behind it, in messages. */
export function describeTarget({ kind }: Target): string {
  return { redis: 'Redis', postgres: 'Postgres', mysql: 'MySQL', sqlite: 'SQLite', store: 'The store' }[kind]
}

/** What every target has. */
export interface OpenedStore {
  readonly store: Store
  close(): Promise<void>
}

export interface ModuleTarget extends OpenedStore {
  readonly kind: 'store'
}

/**
 * Redis has no tables that could be missing: in another database, or under another prefix, than the store's there is nothing, as if all
 * were well.
 */
export function printPrefixNotice(target: Target): void {
  if (target.kind !== 'redis') return
  console.error(
    `Only keys of database ${target.database} that begin with ${JSON.stringify(target.prefix)} count. If the store has others, give the ` +
      'number of its database in the URL, as in redis://host/2, and its prefix, colon and all, as --prefix.',
  )
}

/** What a command needs: any store, one that was opened here, or one with tables. */
export type CommandRequirement = 'store' | 'server' | 'tables'

/** @throws UsageError; an error of the driver. */
export async function openTarget({ command, options }: CommandLine, needs: CommandRequirement): Promise<Target> {
  const places = readLocations(options)
  const { redis, postgres, mysql, sqlite, store } = places
  const given = KINDS.filter((kind) => places[kind] !== undefined)
  if (given.length !== 1) {
    throw new UsageError(
      `Say where the records are: one of --redis, --postgres, --mysql, --sqlite and --store (${given.length} given).`,
    )
  }
  assertOptionsAllowed(given[0] as TargetKind, options)
  assertUrl('postgres', postgres)
  assertUrl('mysql', mysql)
  if (store !== undefined && needs !== 'store')
    throw new UsageError(`${command} needs --redis, --postgres, --mysql or --sqlite.`)
  if (redis !== undefined && needs === 'tables')
    throw new UsageError(`${command} is for --postgres, --mysql and --sqlite: Redis has no tables.`)
  if (store !== undefined) return openModuleTarget(store)
  const target =
    redis !== undefined
      ? await openRedis(redis, options.prefix)
      : postgres !== undefined
        ? await openPostgres(postgres, options.schema)
        : mysql !== undefined
          ? await openMySql(mysql, options.prefix)
          : await openSqlite(sqlite as string, toAccess(command as CommandName, options), options.prefix)
  return { ...target, store: createUnsealedStore(target.store) } as Target
}

function toAccess(command: CommandName, options: Options): Access {
  const changes = ['resolve', 'forget', 'migrate'].includes(command) && options['dry-run'] !== true
  return { mustHave: command === 'migrate' ? 'nothing' : command === 'doctor' ? 'file' : 'tables', changes }
}

const KINDS = ['redis', 'postgres', 'mysql', 'sqlite', 'store'] as const
type TargetKind = (typeof KINDS)[number]
type StoreLocations = Readonly<Record<TargetKind, string | undefined>>

/** What each store takes besides. */
const TAKES: Readonly<Record<TargetKind, readonly ('prefix' | 'schema')[]>> = {
  redis: ['prefix'],
  postgres: ['schema'],
  mysql: ['prefix'],
  sqlite: ['prefix'],
  store: [],
}

/** Another store's option is not ignored, as another command's is not: other records would be changed than were meant. */
function assertOptionsAllowed(kind: TargetKind, options: Options): void {
  const other = (['prefix', 'schema'] as const).find(
    (name) => options[name] !== undefined && !TAKES[kind].includes(name),
  )
  if (other !== undefined) throw new UsageError(`--${other} is not for --${kind}: see once-per-key --help.`)
}

/** The drivers take a host without a scheme for a database of another host. A path is a folder of sockets. */
function assertUrl(kind: 'postgres' | 'mysql', place: string | undefined): void {
  if (place === undefined || /^(?:\w+:\/\/|socket:|\/)/.test(place)) return
  throw new UsageError(`--${kind} takes a URL, such as ${kind}://host/database.`)
}

function readLocations(options: Options): StoreLocations {
  const { redis, postgres, mysql, sqlite, store } = options
  const given = { redis, postgres, mysql, sqlite, store }
  if (Object.values(given).some((place) => place !== undefined)) return given
  const places = readEnvironment(process.env)
  for (const kind of ['redis', 'postgres', 'mysql', 'sqlite'] as const)
    assertNotEmpty(`ONCE_PER_KEY_${kind.toUpperCase()}`, places[kind])
  return places
}

/** What the environment says. */
export function readEnvironment(env: NodeJS.ProcessEnv): StoreLocations {
  const { ONCE_PER_KEY_REDIS, ONCE_PER_KEY_POSTGRES, ONCE_PER_KEY_MYSQL, ONCE_PER_KEY_SQLITE } = env
  const servers = { redis: ONCE_PER_KEY_REDIS, postgres: ONCE_PER_KEY_POSTGRES, mysql: ONCE_PER_KEY_MYSQL }
  return { ...servers, sqlite: ONCE_PER_KEY_SQLITE, store: undefined }
}

/** Of an application: it opens its client, and nothing here closes it, but the end of the process. */
async function openModuleTarget(file: string): Promise<ModuleTarget> {
  const module = await import(pathToFileURL(file).href)
  const store = module.store ?? module.default?.store ?? module.default
  if (typeof store?.begin !== 'function') throw new UsageError(`${file} exports no \`store\`.`)
  // Behind what was printed: its client would keep the process.
  const close = async () => void process.stdout.write('', () => process.exit())
  return { kind: 'store', store, close }
}

/** Where keys are given, answers are shown as they were, whether they are sealed or not. */
function createUnsealedStore(store: Store): Store {
  const keys = readSealingKeys()
  return keys.length === 0 ? store : sealed(store, { keys, unsealedMayBeReplayed: true })
}

export function readSealingKeys(): readonly string[] {
  return (process.env.ONCE_PER_KEY_SEALING_KEYS ?? '').split(',').filter((key) => key !== '')
}
