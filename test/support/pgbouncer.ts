import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { connect } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { installedProgram } from '../../examples/servers/installed-program.js'
import { asOrdinaryUser, giveTo } from '../../examples/servers/postgres-programs.js'
import { freePort } from './redis-server.js'

/** A real PgBouncer, which gives a connection of the server to a client for one transaction at a time. */
export interface PgBouncer {
  readonly port: number
  url(database: string): string
  close(): Promise<void>
}

/** In front of a Postgres; `connections`: how many of the server's it shares out to a database. */
export async function startPgBouncer(postgresPort: number, connections = 4): Promise<PgBouncer> {
  const folder = mkdtempSync(join(tmpdir(), 'once-per-key-pgbouncer-'))
  const port = await freePort()
  const file = join(folder, 'pgbouncer.ini')
  const settings = [
    ['listen_addr', '127.0.0.1'],
    ['listen_port', `${port}`],
    ['unix_socket_dir', ''],
    ['auth_type', 'any'],
    ['pool_mode', 'transaction'],
    ['default_pool_size', `${connections}`],
    ['max_client_conn', '200'],
  ].map(([name, value]) => `${name} = ${value}\n`)
  writeFileSync(
    file,
    `[databases]\n* = host=127.0.0.1 port=${postgresPort} user=postgres\n[pgbouncer]\n${settings.join('')}`,
  )
  giveTo(folder)
  const [command, ...args] = asOrdinaryUser(pgBouncerBinary())
  const child = spawn(command, [...args, file], { stdio: 'ignore', cwd: folder })
  await accepting()

  async function accepting(): Promise<void> {
    while (child.exitCode === null) {
      const socket = connect(port, '127.0.0.1')
      const connected = await new Promise((resolve) => {
        socket.on('connect', () => resolve(true)).on('error', () => resolve(false))
      })
      socket.destroy()
      if (connected) return
      await new Promise((resolve) => setTimeout(resolve, 20))
    }
    throw new Error(`pgbouncer exited with code ${child.exitCode} before it was ready.`)
  }

  return {
    port,
    url: (database) => `postgres://postgres@127.0.0.1:${port}/${database}`,
    async close() {
      const exited = once(child, 'exit')
      child.kill('SIGKILL')
      await exited
      rmSync(folder, { recursive: true, force: true })
    },
  }
}

let binary: string | undefined

export function pgBouncerBinary(): string {
  binary ??= installedProgram({
    names: ['pgbouncer'],
    folders: ['/usr/sbin'],
    debianPackage: 'pgbouncer',
    need: 'The tests need PgBouncer (Debian: apt-get install pgbouncer; macOS: brew install pgbouncer).',
  })
  return binary
}
