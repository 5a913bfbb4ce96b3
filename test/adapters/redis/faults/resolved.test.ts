import { Redis } from 'ioredis'
import { singleTenant } from 'once-per-key'
import { createRequestEngine, type KnownOutcome } from 'once-per-key/http'
import { RedisStore } from 'once-per-key/redis'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import type { RawReply } from '../../../support/raw-client.js'
import { type RedisServer, startRedis } from '../../../support/redis-server.js'
import { type BuiltServer, buildServer, type ServerProcess } from '../../../support/server-process.js'

const OPTIONS = { leaseMs: 1_000, storeTimeoutMs: 250, unknownOutcome: 'refuse' } as const

let redis: RedisServer
let server: BuiltServer
let client: Redis

beforeAll(async () => {
  ;[redis, server] = await Promise.all([startRedis(), buildServer()])
  client = new Redis(redis.port)
}, 30_000)
afterAll(async () => {
  client.disconnect()
  await server.remove()
  await redis.close()
})

/** Sends it again for as long as it is told to come back. */
async function payUntilDecided(process: ServerProcess, key: string): Promise<RawReply> {
  while (true) {
    const reply = await process.pay(key)
    if (reply.header('X-Should-Retry') !== 'true') return reply
    await new Promise((resolve) => setTimeout(resolve, 25))
  }
}

describe('the owner is killed (-9), and an operator in a process of its own resolves', () => {
  /** As an admin script does it, with an engine of its own. */
  async function resolved(key: string, as: KnownOutcome) {
    const settings = { library: 'ioredis', redisPort: redis.port, options: OPTIONS } as const
    const [owner, heir] = await Promise.all([
      server.start({ name: 'owner', ...settings, waits: true }),
      server.start({ name: 'heir', ...settings }),
    ])
    const unanswered = expect(owner.pay(key)).rejects.toThrow('connection closed')
    await owner.told({ type: 'run' })
    await owner.kill()
    await unanswered

    const operator = createRequestEngine({ store: new RedisStore({ client }), scope: singleTenant })
    const name = { scope: singleTenant(), key }
    const tooEarly = await operator.resolve({ ...name, attempt: 1 }, as)
    expect(tooEarly).toMatchObject({ ok: false, record: { state: 'in-flight', attempt: 1 } })
    expect((await payUntilDecided(heir, key)).json()).toMatchObject({ code: 'outcome_unknown' })
    expect(await operator.inspect(name)).toMatchObject({ state: 'in-flight', attempt: 1 })
    expect(await operator.resolve({ ...name, attempt: 1 }, as)).toEqual({ ok: true })
    return { reply: await heir.pay(key), runs: heir.messages.filter(({ type }) => type === 'run') }
  }

  test.concurrent('as completed: the retry is given the operator’s answer, and nothing runs', async () => {
    const { reply, runs } = await resolved('paid', { completed: { status: 201, body: { foundOut: true } } })
    expect([reply.status, reply.json(), reply.header('Idempotent-Replayed')]).toEqual([201, { foundOut: true }, 'true'])
    expect(runs).toEqual([])
  }, 30_000)

  test.concurrent('as failed: the retry runs, and is told that one failed', async () => {
    const { reply, runs } = await resolved('not-paid', 'failed')
    expect([reply.status, reply.json()]).toEqual([201, { paidBy: 'heir', attempt: 2 }])
    expect(runs).toEqual([{ type: 'run', attempt: 2, previousOutcome: 'failed' }])
  }, 30_000)
})
