import { Redis } from 'ioredis'
import { RedisStore } from 'once-per-key/redis'
import { storeLaws } from 'once-per-key/testing'
import { afterAll, describe, test } from 'vitest'
import { startRedis } from '../../support/redis-server.js'

describe('RedisStore obeys the store laws on a real Redis, with ioredis', async () => {
  const server = await startRedis()
  const client = new Redis(server.url)
  afterAll(async () => {
    client.disconnect()
    await server.close()
  })
  let opened = 0

  storeLaws(test, async () => ({ store: new RedisStore({ client, prefix: `law-${++opened}:` }) }))
})
