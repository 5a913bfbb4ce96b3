import { createConnection, type RowDataPacket } from 'mysql2/promise'
import { startOwnMariaDb } from '../../examples/servers/mariadb.js'
import type { OwnServer } from '../../examples/servers/own-server.js'
import { note } from './servers.js'

/** A real MariaDB of the test's own. */
export interface MariaDbServer {
  readonly port: number
  url(database?: string): string
  /** A new, empty database. Resolves with its URL. */
  createDatabase(name: string): Promise<string>
  /** One statement, as the superuser. */
  run(sql: string, database?: string): Promise<Record<string, unknown>[]>
  /** Pauses it and lets it go on: SIGSTOP and SIGCONT. */
  signal(signal: NodeJS.Signals): void
  /** Ends it as a crash would. */
  crash(): Promise<void>
  /** Starts it again, after a crash or not: on the same port, with the data that it kept. */
  restart(): Promise<void>
  close(): Promise<void>
}

/** MySQL itself is tried in its place. */
export const IS_MYSQL = process.env.ONCE_PER_KEY_MYSQLD !== undefined

/** Kept from tests that ask for durability alone: it outlives a crash of MariaDB, not one of the machine. */
const DEFAULTS = { innodb_flush_log_at_trx_commit: '2', max_connections: '400' }

/** Starts a server on a free port, with a folder of its own. */
export async function startMariaDb(settings: Readonly<Record<string, string>> = {}): Promise<MariaDbServer> {
  return serverOf(await startOwnMariaDb({ ...DEFAULTS, ...settings }))
}

let shared: Promise<MariaDbServer> | undefined
let databases = 0

/**
 * A new, empty database on the server of this worker, which starts it once for all its files. For what neither stops a server nor
 * changes its settings.
 */
export async function newMariaDbDatabase(): Promise<{ readonly server: MariaDbServer; readonly url: string }> {
  shared ??= startOwnMariaDb(DEFAULTS).then((own) => {
    note({ pid: own.pid(), folder: own.folder })
    return serverOf(own)
  })
  const server = await shared
  databases += 1
  return { server, url: await server.createDatabase(`file_${databases}`) }
}

function serverOf({ port, url, pid, start, stop, remove }: OwnServer): MariaDbServer {
  async function run(sql: string, database = 'mysql'): Promise<Record<string, unknown>[]> {
    const connection = await createConnection({ uri: url(database) })
    try {
      const [rows] = await connection.query<RowDataPacket[]>(sql)
      return rows
    } finally {
      await connection.end()
    }
  }

  return {
    port,
    url,
    run,
    async createDatabase(name) {
      await run(`CREATE DATABASE ${name}`)
      return url(name)
    },
    signal: (signal) => void process.kill(pid(), signal),
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
