import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { Redis } from 'ioredis'
import { freePort, redisBinary, startRedis } from '../../support/redis-server.js'

export const SENTINEL_NAME = 'main'

/** A real Redis, and a real sentinel that knows it as `SENTINEL_NAME`. */
export interface RedisSentinel {
  readonly port: number
  close(): Promise<void>
}

export async function startRedisSentinel(): Promise<RedisSentinel> {
  const server = await startRedis()
  const { port, close } = await startSentinel(server.port)
  return { port, close: () => close().then(() => server.close()) }
}

/** A real sentinel. `settings`: of the master, as `sentinel <name> <master> <value>` of its file sets them. */
export async function startSentinel(
  masterPort: number,
  quorum = 1,
  settings: Readonly<Record<string, number>> = {},
): Promise<RedisSentinel> {
  const folder = mkdtempSync(join(tmpdir(), 'once-per-key-sentinel-'))
  const port = await freePort()
  const file = join(folder, 'sentinel.conf')
  const lines = Object.entries(settings).map(([name, value]) => `sentinel ${name} ${SENTINEL_NAME} ${value}`)
  const monitor = `sentinel monitor ${SENTINEL_NAME} 127.0.0.1 ${masterPort} ${quorum}`
  writeFileSync(file, [`port ${port}`, `dir ${folder}`, monitor, ...lines, ''].join('\n'))
  const sentinel = spawn(redisBinary(), [file, '--sentinel'], { stdio: 'ignore' })
  // ioredis tries until it is there.
  const client = new Redis(port, { maxRetriesPerRequest: null, retryStrategy: () => 10 }).on('error', () => {})
  await client.ping()
  client.disconnect()
  return {
    port,
    async close() {
      const exited = once(sentinel, 'exit')
      sentinel.kill('SIGKILL')
      await exited
      rmSync(folder, { recursive: true, force: true })
    },
  }
}
