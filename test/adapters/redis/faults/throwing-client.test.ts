import { Redis } from 'ioredis'
import { createOperationEngine } from 'once-per-key/core'
import { RedisStore } from 'once-per-key/redis'
import { expect, onTestFinished, test } from 'vitest'
import { startRedis } from '../../../support/redis-server.js'

test('a client that throws where it is sent a script again has failed, and no rejection is left over', async () => {
  const server = await startRedis()
  const client = new Redis(server.port)
  onTestFinished(async () => {
    client.disconnect()
    await server.close()
  })
  // As a cluster of ioredis does, with auto-pipelining, where the slot has lost its server meanwhile.
  Object.assign(client, {
    evalBuffer: () => {
      throw new TypeError('no server has the slot')
    },
  })
  const failures: unknown[] = []
  const engine = createOperationEngine({
    store: new RedisStore({ client }),
    onEvent: (event) => {
      if (event.type === 'store_failed') failures.push(event.error)
    },
  })
  const claimed = await engine.claim({ scope: 'acme', key: 'k', fingerprint: 'f' })
  expect(claimed).toMatchObject({ action: 'refuse', code: 'store_unavailable' })
  expect(failures[0]).toMatchObject({ message: 'no server has the slot' })
})
