import { readFileSync } from 'node:fs'
import type Sqlite from 'better-sqlite3'
import { createConnection, type RowDataPacket } from 'mysql2/promise'
import { startOwnMariaDb } from '../../examples/servers/mariadb.js'
import type { OwnServer } from '../../examples/servers/own-server.js'
import { type PostgresServer, startPostgres } from '../../test/support/postgres-server.js'
import { loadPeer } from './peer-packages.js'

/** A Postgres that syncs its log, as in production. */
export function startDatabase(): Promise<PostgresServer> {
  return startPostgres({ fsync: 'on' })
}

/** A MariaDB that syncs its log. */
export function startMySql(): Promise<OwnServer> {
  return startOwnMariaDb({ innodb_flush_log_at_trx_commit: '1', max_connections: '400' })
}

/** Of a new database, and what the server says of itself. */
export async function mySqlDatabase(server: OwnServer): Promise<{ readonly url: string; readonly version: string }> {
  const connection = await createConnection({ uri: server.url('mysql') })
  try {
    await connection.query('CREATE DATABASE payments')
    const [rows] = await connection.query<RowDataPacket[]>('SELECT version() AS version')
    return { url: server.url('payments'), version: String(rows[0]?.version) }
  } finally {
    await connection.end()
  }
}

export async function versionOf(server: PostgresServer): Promise<string> {
  const [row] = await server.run('SHOW server_version')
  return String(row?.server_version)
}

/** Of the one that better-sqlite3 brings. */
export function sqliteVersion(): string {
  const Database = loadPeer<typeof Sqlite>('better-sqlite3')
  const database = new Database(':memory:')
  try {
    return String(database.prepare('SELECT sqlite_version()').pluck().get())
  } finally {
    database.close()
  }
}

/** The CPU time of each of its processes since it started, user and system; none where there is no /proc. */
export function cpuMicrosOf(processes: readonly number[]): ReadonlyMap<number, number> {
  return new Map(processes.flatMap((pid) => cpuOf(pid).map((micros) => [pid, micros])))
}

/** proc(5): times are in clock ticks, of which Linux shows 100 a second. */
const TICK_MICROS = 10_000
const [UTIME, STIME] = [11, 12]

/** None of a process that has ended. */
function cpuOf(pid: number): number[] {
  try {
    // The program's name, in parentheses, may contain spaces.
    const fields = readFileSync(`/proc/${pid}/stat`, 'utf8')
      .replace(/^.*\) /, '')
      .split(' ')
    return [(Number(fields[UTIME]) + Number(fields[STIME])) * TICK_MICROS]
  } catch {
    return []
  }
}
