import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { LIBRARIES } from '../support/default-clients.js'
import { type FaultProxy, startFaultProxy } from '../support/fault-proxy.js'
import { connectTo } from '../support/raw-client.js'
import type { ServerProcess } from '../support/server-process.js'
import { startServersOnRedis } from './servers-on-redis.js'

const { redis, server } = await startServersOnRedis()

describe.each(LIBRARIES)('two processes on one Redis, with $name', ({ name: library }) => {
  let first: ServerProcess
  let second: ServerProcess
  let linkOfFirst: FaultProxy

  beforeAll(async () => {
    linkOfFirst = await startFaultProxy(redis.port)
    // No fault here is one of time: a busy machine must not look like one.
    const options = { storeTimeoutMs: 7_500 }
    ;[first, second] = await Promise.all([
      server.start({ name: 'first', library, redisPort: linkOfFirst.port, options }),
      server.start({ name: 'second', library, redisPort: redis.port, options }),
    ])
  }, 30_000)
  afterAll(() => linkOfFirst.close())

  test('50 identical requests at once run once', async () => {
    const key = `${library}-crowd`
    const replies = await Promise.all(
      Array.from({ length: 50 }, (_, index) => (index % 2 === 0 ? first : second).pay(key)),
    )
    const fresh = replies.filter((reply) => reply.status === 201 && reply.header('Idempotent-Replayed') === undefined)
    expect(fresh).toHaveLength(1)
    for (const reply of replies) {
      if (reply.status === 201) expect(reply.body).toEqual(fresh[0]?.body)
      else expect([reply.status, reply.json()]).toEqual([409, expect.objectContaining({ code: 'in_flight' })])
    }
    const retries = await Promise.all([first.pay(key), second.pay(key)])
    for (const retry of retries) expect(retry.header('Idempotent-Replayed')).toBe('true')

    expect([...first.messages, ...second.messages].filter(({ type }) => type === 'run')).toHaveLength(1)
  })

  test.each([0, 20])(
    'a retry through the second right after the first byte from the first is a replay, 200 times of 200: %i ms of latency',
    async (latencyMs) => {
      linkOfFirst.delay(latencyMs)
      const outcomes: unknown[] = []
      await inLanes(20, 200, async (index) => {
        const key = `${library}-${latencyMs}-${index}`
        const connection = connectTo(first.port)
        connection.send({ path: '/pay', key })
        await connection.firstByte
        const retry = await second.pay(key)
        const original = await connection.reply()
        connection.socket.destroy()
        outcomes.push([
          original.status,
          retry.status,
          retry.header('Idempotent-Replayed'),
          retry.body.equals(original.body),
        ])
      })
      expect(outcomes).toEqual(Array.from({ length: 200 }, () => [201, 201, 'true', true]))
    },
    30_000,
  )
})

/** Many at a time, each lane one after the other. */
async function inLanes(lanes: number, count: number, step: (index: number) => Promise<void>): Promise<void> {
  let next = 0
  const lane = async () => {
    while (next < count) await step(next++)
  }
  await Promise.all(Array.from({ length: lanes }, lane))
}
