import { afterAll } from 'vitest'
import { type RedisServer, startRedis } from '../support/redis-server.js'
import { type BuiltServer, buildServer } from '../support/server-process.js'

/** A Redis, and a server program whose processes use it. Both are gone after the tests of this file. */
export async function startServersOnRedis(): Promise<{ readonly redis: RedisServer; readonly server: BuiltServer }> {
  const [redis, server] = await Promise.all([startRedis(), buildServer()])
  afterAll(async () => {
    await server.remove()
    await redis.close()
  })
  return { redis, server }
}
