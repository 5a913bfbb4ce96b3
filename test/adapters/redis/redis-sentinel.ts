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
  const folder = mkdtempSync(join(tmpdir(), 'once-per-key-sentinel-'))
  const port = await freePort()
  const file = join(folder, 'sentinel.conf')
  writeFileSync(file, `port ${port}\ndir ${folder}\nsentinel monitor ${SENTINEL_NAME} 127.0.0.1 ${server.port} 1\n`)
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
      await server.close()
    },
  }
}
