import { execFileSync } from 'node:child_process'
import { mkdtempSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { Client } from 'pg'
import { freePort } from './free-port.js'
import { type OwnServer, startServer } from './own-server.js'
import { asOrdinaryUser, giveTo, postgresFolder } from './postgres-programs.js'

/**
 * Starts a server. `settings`: as in postgresql.conf. `programs`: the folder of its programs; without it they are found, or as
 * root on Debian installed.
 */
export async function startOwnPostgres(
  settings: Readonly<Record<string, string>> = {},
  programs = postgresFolder(),
): Promise<OwnServer> {
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
  const place = ['-D', data, '-p', `${port}`, '-k', folder, '-h', '127.0.0.1']
  const server = { program: postgres, args: [...args, ...place, ...given], name: 'postgres' }
  return startServer({ port, folder, url, ...server, crash: 'SIGQUIT', accepts })
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
