import { type ChildProcess, execFileSync, spawn } from 'node:child_process'
import { once } from 'node:events'
import { chownSync, mkdtempSync, openSync, readdirSync, readFileSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { dirname, join } from 'node:path'
import { Client } from 'pg'
import { installedProgram } from './installed-program.js'
import { freePort } from './redis-server.js'

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
}

export type Settings = Readonly<Record<string, string>>

/** Kept from tests that ask for durability alone: it outlives a crash of Postgres, not one of the machine. */
const DEFAULTS: Settings = { fsync: 'off', max_connections: '200', log_min_messages: 'error' }

/** Starts a server on a free port, with a folder of its own. */
export async function startPostgres(settings: Settings = {}): Promise<PostgresServer> {
  const folder = mkdtempSync(join(tmpdir(), 'once-per-key-postgres-'))
  giveTo(folder)
  const data = join(folder, 'data')
  const port = await freePort()
  const [initdb, ...initdbArgs] = asOrdinaryUser('initdb')
  execFileSync(
    initdb,
    [...initdbArgs, '-D', data, '-U', 'postgres', '-A', 'trust', '-E', 'UTF8', '--locale=C', '--no-sync'],
    {
      stdio: 'ignore',
      cwd: folder,
    },
  )
  let child: ChildProcess

  async function start(): Promise<void> {
    const given = Object.entries({ ...DEFAULTS, ...settings }).flatMap(([name, value]) => ['-c', `${name}=${value}`])
    const [postgres, ...args] = asOrdinaryUser('postgres')
    const log = openSync(join(folder, 'log'), 'a')
    child = spawn(postgres, [...args, '-D', data, '-p', `${port}`, '-k', folder, '-h', '127.0.0.1', ...given], {
      stdio: ['ignore', log, log],
      cwd: folder,
    })
    await accepting()
  }

  async function accepting(): Promise<void> {
    while (child.exitCode === null) {
      try {
        return void (await run('SELECT 1'))
      } catch {
        await new Promise((resolve) => setTimeout(resolve, 20))
      }
    }
    throw new Error(`postgres exited with code ${child.exitCode}: ${readFileSync(join(folder, 'log'), 'utf8')}`)
  }

  async function stop(): Promise<void> {
    if (child.exitCode !== null || child.signalCode !== null) return
    const exited = once(child, 'exit')
    child.kill('SIGQUIT')
    await exited
  }

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

  function url(database = 'postgres'): string {
    return `postgres://postgres@127.0.0.1:${port}/${database}`
  }

  function processes(): number[] {
    const pid = child.pid as number
    const children = execFileSync('ps', ['-o', 'pid=', '--ppid', `${pid}`], { encoding: 'utf8' })
    return [pid, ...children.split('\n').filter(Boolean).map(Number)]
  }

  await start()
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
      rmSync(folder, { recursive: true, force: true })
    },
  }
}

let folderOfPrograms: string | undefined

/** Where its programs are; ONCE_PER_KEY_POSTGRES names the folder of another version than the newest that is installed. */
export function postgresFolder(): string {
  folderOfPrograms ??= dirname(
    installedProgram({
      names: ['postgres'],
      folders: [process.env.ONCE_PER_KEY_POSTGRES ?? '', ...debianFolders()].filter((folder) => folder !== ''),
      debianPackage: 'postgresql',
      // "postgres (PostgreSQL) 15.18 (Debian 15.18-0+deb12u1)"
      suits: (version) => Number(/ (\d+)\./.exec(version)?.[1]) >= 14,
      need: 'The tests need a real Postgres 14 or later (Debian: apt-get install postgresql; macOS: brew install postgresql@17, on the PATH).',
    }),
  )
  return folderOfPrograms
}

/** It is not on the PATH there; the newest first. */
function debianFolders(): string[] {
  try {
    const versions = readdirSync(DEBIAN).sort((a, b) => Number(b) - Number(a))
    return versions.map((version) => join(DEBIAN, version, 'bin'))
  } catch {
    return []
  }
}

const DEBIAN = '/usr/lib/postgresql'

/** Neither Postgres nor PgBouncer runs as root: then the command runs as the user that Debian's package has made. */
export function asOrdinaryUser(program: string): [command: string, ...args: string[]] {
  const path = program.includes('/') ? program : join(postgresFolder(), program)
  if (process.getuid?.() !== 0) return [path]
  return ['setpriv', '--reuid=postgres', '--regid=postgres', '--init-groups', path]
}

/** Hands a folder to that user. */
export function giveTo(folder: string): void {
  if (process.getuid?.() !== 0) return
  const [uid, gid] = ['-u', '-g'].map((option) =>
    Number(execFileSync('id', [option, 'postgres'], { encoding: 'utf8' })),
  )
  chownSync(folder, uid as number, gid as number)
}
