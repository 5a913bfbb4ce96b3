import { RedisStore } from 'once-per-key/redis'
import { afterAll, describe, test, vi } from 'vitest'
import { createSender } from '../../../adapters/redis/client.js'
import { HISTORY_KEYS, tryHistories, tryOperatedHistories } from '../../support/history-trials.js'
import { thoroughly } from '../../support/thoroughness.js'
import { age } from './ageing.js'
import { REDIS, REDIS_CLUSTER } from './grounds.js'
import type { OpenClient } from './opened-client.js'

vi.setConfig({ testTimeout: 120_000 })

const AT_ONCE = 40
const TIMES = thoroughly(1, 8)
const COMMANDS = { number: 100 * TIMES, fewestCommands: 2_500 * TIMES, fewestVisits: 12 * TIMES }
const OPERATED = { number: 40 * TIMES, fewestCommands: 1_250 * TIMES, fewestVisits: 2 * TIMES }

describe.each([REDIS, REDIS_CLUSTER])('random histories on $name', async ({ start, clients }) => {
  const { port, close } = await start()
  afterAll(close)

  describe.each(['ioredis 6', 'node-redis 6'])('get the replies of the machine, through %s', (name) => {
    test.each([
      ['of commands', tryHistories, COMMANDS],
      ['with operators in between', tryOperatedHistories, OPERATED],
    ] as const)('%s', async (kind, tried, trial) => {
      const { client, close } = await (clients[name] as OpenClient)(port)
      const send = createSender(client) as NonNullable<ReturnType<typeof createSender>>
      await tried(trial, AT_ONCE, (number) => {
        const prefix = `${encodeURIComponent(`history ${name} ${kind} ${number}`)}:`
        const advance = async (ms: number) =>
          void (await Promise.all(HISTORY_KEYS.map((key) => age(send, prefix + key, ms))))
        return { store: new RedisStore({ client, prefix }), advance }
      })
      close()
    })
  })
})
