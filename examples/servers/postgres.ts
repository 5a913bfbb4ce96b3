import { type ChildProcess, execFileSync, spawn } from 'node:child_process'
import { once } from 'node:events'
import { mkdtempSync, openSync, readFileSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { setTimeout } from 'node:timers/promises'
import { Client } from 'pg'
import { freePort } from './free-port.js'
import { asOrdinaryUser, giveTo, postgresFolder } from './postgres-programs.js'

/** A Postgres of one's own, on a free port of 127.0.0.1, with its data in a temporary folder. */
export interface OwnPostgres {
  readonly port: number
  /** With its data and its log. */
  readonly folder: string
  /** Of the superuser. */
  url(database?: string): string
  /** Its first process; it has another one after each start. */
  pid(): number
  /** Again, behind `stop`: with the data that it kept. */
  start(): Promise<void>
  /** As a crash would: without a checkpoint, and without a word to its clients. */
  stop(): Promise<void>
  /** At once, and its data with it: for the end of this process. */
  remove(): void
}

/**
 * Starts a server. `settings`: as in postgresql.conf. `programs`: the folder of its programs; without it they are found, or as
 * root on Debian installed.
 */
export async function startOwnPostgres(
  settings: Readonly<Record<string, string>> = {},
  programs = postgresFolder(),
): Promise<OwnPostgres> {
  const [initdb, ...initdbArgs] = asOrdinaryUser(join(programs, 'initdb'))
  const [postgres, ...args] = asOrdinaryUser(join(programs, 'postgres'))
  const folder = mkdtempSync(join(tmpdir(), 'once-per-key-postgres-'))
  giveTo(folder)
  const data = join(folder, 'data')
  const files = ['-D', data, '-U', 'postgres', '-A', 'trust', '-E', 'UTF8', '--locale=C', '--no-sync']
  execFileSync(initdb, [...initdbArgs, ...files], { stdio: 'ignore', cwd: folder })
  const given = Object.entries(settings).flatMap(([name, value]) => ['-c', `${name}=${value}`])
  const port = await freePort()
  const url = (database = 'postgres') => `postgres://postgres@127.0.0.1:${port}/${database}`
  let child: ChildProcess

  async function start(): Promise<void> {
    const log = openSync(join(folder, 'log'), 'a')
    const place = ['-D', data, '-p', `${port}`, '-k', folder, '-h', '127.0.0.1']
    child = spawn(postgres, [...args, ...place, ...given], { stdio: ['ignore', log, log], cwd: folder })
    while (child.exitCode === null) {
      if (await accepts(url())) return
      await setTimeout(20)
    }
    throw new Error(`postgres exited with code ${child.exitCode}: ${readFileSync(join(folder, 'log'), 'utf8')}`)
  }

  const isRunning = () => child.exitCode === null && child.signalCode === null

  await start()
  return {
    port,
    folder,
    url,
    pid: () => child.pid as number,
    start,
    async stop() {
      if (!isRunning()) return
      const exited = once(child, 'exit')
      child.kill('SIGQUIT')
      await exited
    },
    remove() {
      if (isRunning()) child.kill('SIGQUIT')
      rmSync(folder, { recursive: true, force: true, maxRetries: 5 })
    },
  }
}

async function accepts(connectionString: string): Promise<boolean> {
  const client = new Client({ connectionString })
  client.on('error', () => {})
  try {
    await client.connect()
    await client.query('SELECT 1')
    return true
  } catch {
    return false
  } finally {
    await client.end().catch(() => {})
  }
}
