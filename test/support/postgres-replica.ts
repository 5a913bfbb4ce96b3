import { execFileSync, spawn } from 'node:child_process'
import { once } from 'node:events'
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { Client } from 'pg'
import { asOrdinaryUser, giveTo } from '../../examples/servers/postgres-programs.js'
import { freePort } from './redis-server.js'

/** A server that follows another one, and answers questions alone. */
export async function startReplica(primaryPort: number): Promise<{ readonly url: string; close(): Promise<void> }> {
  const folder = mkdtempSync(join(tmpdir(), 'once-per-key-replica-'))
  giveTo(folder)
  const data = join(folder, 'data')
  const port = await freePort()
  const from = ['-h', '127.0.0.1', '-p', `${primaryPort}`, '-U', 'postgres']
  const [backup, ...backupArgs] = asOrdinaryUser('pg_basebackup')
  execFileSync(backup, [...backupArgs, ...from, '-D', data, '-R', '-c', 'fast', '--no-sync'], {
    stdio: 'ignore',
    cwd: folder,
  })
  const [postgres, ...args] = asOrdinaryUser('postgres')
  const settings = ['-h', '127.0.0.1', '-p', `${port}`, '-k', folder, '-c', 'fsync=off', '-c', 'max_connections=200']
  const child = spawn(postgres, [...args, '-D', data, ...settings], { stdio: 'ignore', cwd: folder })
  const url = `postgres://postgres@127.0.0.1:${port}/postgres`
  while (!(await accepts(url))) {
    if (child.exitCode !== null) throw new Error(`The replica exited with code ${child.exitCode}.`)
    await new Promise((resolve) => setTimeout(resolve, 20))
  }
  return {
    url,
    async close() {
      const exited = once(child, 'exit')
      child.kill('SIGQUIT')
      await exited
      rmSync(folder, { recursive: true, force: true })
    },
  }
}

async function accepts(connectionString: string): Promise<boolean> {
  const client = new Client({ connectionString })
  client.on('error', () => {})
  try {
    await client.connect()
    await client.end()
    return true
  } catch {
    return false
  }
}
