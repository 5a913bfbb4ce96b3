import { readFileSync } from 'node:fs'
import { Redis } from 'ioredis'
import { RedisStore } from 'once-per-key/redis'
import { afterAll, beforeEach, describe, expect, test } from 'vitest'
import { BINDINGS } from '../support/bindings.js'
import { request } from '../support/raw-client.js'
import { startRedis } from '../support/redis-server.js'
import { serve } from '../support/serve.js'
import { essenceOf } from './same-answer.js'

interface Golden {
  readonly name: string
  readonly method: string
  /** The bytes that 0.1.0 wrote to Redis, in hex, for a request without a body to `/`, of `acme`, under the key `k`. */
  readonly record: string
  /** What a retry got from 0.1.0; its body in hex. */
  readonly reply: {
    readonly status: number
    readonly statusMessage: string
    readonly headers: readonly (readonly [name: string, value: string])[]
    readonly body: string
  }
}

// One for each way in which handlers answer (`answer-styles.ts`) that made other bytes. Frozen: a deployment must not turn a
// payment that was made into an error, or into another payment.
const GOLDEN: readonly Golden[] = JSON.parse(
  readFileSync(new URL('golden/answers-0.1.0.json', import.meta.url), 'utf8'),
)

const server = await startRedis('--appendonly', 'no')
const redis = new Redis(server.port)
const store = new RedisStore({ client: redis })
afterAll(async () => {
  redis.disconnect()
  await server.close()
})
beforeEach(() => redis.flushdb())

describe.each(BINDINGS)('$name', (binding) => {
  test.each(GOLDEN)('what 0.1.0 stored is replayed as 0.1.0 replayed it: $name', async ({ method, record, reply }) => {
    await redis.set('once-per-key:acme:k', Buffer.from(record, 'hex'), 'PX', 600_000)
    const serving = await serve(binding, (_req, res) => res.end('it ran again'), { options: { store } })
    const replay = await request(serving.port, { method, key: 'k' })
    expect(serving.events).toMatchObject([{ type: 'replayed' }])
    const headers = replay.headers.filter(([name]) => name !== 'X-Powered-By')
    const due = { ...replay, ...reply, body: Buffer.from(reply.body, 'hex') }
    expect(essenceOf({ ...replay, headers })).toEqual(essenceOf(due))
    if (method !== 'HEAD') return
    const lengths = reply.headers.filter(([name]) => name === 'Content-Length').map(([, length]) => length)
    expect(replay.lines('Content-Length')).toEqual(lengths)
  })
})
