import { execFileSync } from 'node:child_process'
import { Client } from 'pg'
import type { OwnServer } from '../../examples/servers/own-server.js'
import { startOwnPostgres } from '../../examples/servers/postgres.js'
import { note } from './servers.js'

/** A real Postgres of the test's own. */
export interface PostgresServer {
  readonly port: number
  url(database?: string): string
  /** A new, empty database, with settings of its own. Resolves with its URL. */
  createDatabase(name: string, settings?: Settings): Promise<string>
  /** One statement, or several, as the superuser. */
  run(sql: string, database?: string): Promise<Record<string, unknown>[]>
  /** Pauses it and lets it go on: SIGSTOP and SIGCONT, to every process of it. */
  signal(signal: NodeJS.Signals): void
  /** Ends it as a crash would: without a checkpoint, and without a word to its clients. */
  crash(): Promise<void>
  /** Starts it again, after a crash or not: on the same port, with the data that it kept. */
  restart(): Promise<void>
  close(): Promise<void>
  /** The first, and those of its connections and its own work. */
  processes(): number[]
}

export type Settings = Readonly<Record<string, string>>

/** Kept from tests that ask for durability alone: it outlives a crash of Postgres, not one of the machine. */
const DEFAULTS: Settings = { fsync: 'off', max_connections: '200', log_min_messages: 'error' }

/** Starts a server on a free port, with a folder of its own. `programs`: the folder of another version's. */
export async function startPostgres(settings: Settings = {}, programs?: string): Promise<PostgresServer> {
  return serverOf(await startOwnPostgres({ ...DEFAULTS, ...settings }, programs))
}

let shared: Promise<PostgresServer> | undefined
let databases = 0

/**
 * A new, empty database on the server of this worker, which starts it once for all its files. For what neither stops a server nor
 * changes its settings or its roles.
 */
export async function newDatabase(): Promise<{ readonly server: PostgresServer; readonly url: string }> {
  shared ??= startOwnPostgres(DEFAULTS).then((own) => {
    note({ pid: own.pid(), folder: own.folder })
    return serverOf(own)
  })
  const server = await shared
  databases += 1
  return { server, url: await server.createDatabase(`file_${databases}`) }
}

function serverOf({ port, url, pid, start, stop, remove }: OwnServer): PostgresServer {
  async function run(sql: string, database = 'postgres'): Promise<Record<string, unknown>[]> {
    const client = new Client({ connectionString: url(database) })
    client.on('error', () => {})
    await client.connect()
    try {
      const result = await client.query(sql)
      return [result].flat().at(-1)?.rows ?? []
    } finally {
      await client.end()
    }
  }

  function processes(): number[] {
    const children = execFileSync('ps', ['-o', 'pid=', '--ppid', `${pid()}`], { encoding: 'utf8' })
    return [pid(), ...children.split('\n').filter(Boolean).map(Number)]
  }

  return {
    port,
    url,
    run,
    async createDatabase(name, options = {}) {
      await run(`CREATE DATABASE ${name}`)
      for (const [option, value] of Object.entries(options))
        await run(`ALTER DATABASE ${name} SET ${option} = '${value}'`)
      return url(name)
    },
    processes,
    signal(signal) {
      for (const pid of processes()) process.kill(pid, signal)
    },
    crash: stop,
    async restart() {
      await stop()
      await start()
    },
    async close() {
      await stop()
      remove()
    },
  }
}
