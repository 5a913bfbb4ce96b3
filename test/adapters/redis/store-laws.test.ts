import { RedisStore } from 'once-per-key/redis'
import { storeLaws } from 'once-per-key/testing'
import { afterAll, describe, test, vi } from 'vitest'
import { thoroughly } from '../../support/thoroughness.js'
import { REDIS, REDIS_CLUSTER } from './grounds.js'
import type { OpenClient } from './opened-client.js'

// The laws wait for real leases to lapse, each on keys of its own: together they wait no longer than one.
vi.setConfig({ maxConcurrency: 40, testTimeout: 30_000 })

describe.each(thoroughly([REDIS], [REDIS, REDIS_CLUSTER]))(
  'RedisStore obeys the store laws on $name',
  async ({ start, clients }) => {
    const { port, close } = await start()
    afterAll(close)

    describe.each(Object.entries(clients).filter(isDefault))('with %s', async (_name, open: OpenClient) => {
      const { client, close } = await open(port)
      afterAll(close)
      let opened = 0
      storeLaws(test.concurrent, async () => ({ store: new RedisStore({ client, prefix: `law-${++opened}:` }) }), {
        operable: true,
        listable: true,
        forgetful: true,
        stepped: true,
      })
    })
  },
)

/** With its own defaults: one, or one of each family. */
function isDefault([name]: [string, OpenClient]): boolean {
  return thoroughly(['ioredis 6'], ['ioredis 6', 'node-redis 6']).includes(name)
}
