import fc from 'fast-check'
import { RedisStore } from 'once-per-key/redis'
import { afterAll, describe, expect, test, vi } from 'vitest'
import { senderOf } from '../../../adapters/redis/client.js'
import {
  noOperatorVisits,
  type OperatedReply,
  operatedHistories,
  operatedRepliesOfMachine,
  operatedRepliesOfStore,
} from '../../support/operator-histories.js'
import { age } from './ageing.js'
import type { OpenClient } from './clients.js'
import { REDIS, REDIS_CLUSTER } from './grounds.js'

vi.setConfig({ testTimeout: 120_000 })

// A step of a history is a multiple of a minute, so what passes really, a few seconds at most, decides nothing.
const UNIT_MS = 60_000
const HISTORIES = 250
const AT_ONCE = 40
const KEYS = ['k1', 'k2', 'k3']

describe.each([REDIS, REDIS_CLUSTER])('random histories with operators in between on $name', async (ground) => {
  const { port, close } = await ground.start()
  afterAll(close)

  test.each(['ioredis 6', 'node-redis 6'])('get the replies of the machine, through %s', async (name) => {
    const { client, close } = await (ground.clients[name] as OpenClient)(port)
    const send = senderOf(client) as NonNullable<ReturnType<typeof senderOf>>
    const seed = fc.sample(fc.integer(), 1)[0] as number
    const all = fc.sample(operatedHistories(UNIT_MS), { numRuns: HISTORIES, seed })
    const visits = noOperatorVisits()

    async function replies(number: number): Promise<void> {
      const prefix = `operated-${name}-${number}:`
      const store = new RedisStore({ client, prefix })
      const advance = async (ms: number) => void (await Promise.all(KEYS.map((key) => age(send, prefix + key, ms))))
      const history = all[number] as (typeof all)[number]
      const seen = await operatedRepliesOfStore(history, store, advance)
      const due = operatedRepliesOfMachine(history, visits)
      expect(structuredClone(seen.map(toWholeUnits)), `seed ${seed}, history ${number}`).toEqual(structuredClone(due))
    }

    let next = 0
    async function worker(): Promise<void> {
      while (next < all.length) await replies(next++)
    }
    await Promise.all(Array.from({ length: AT_ONCE }, worker))
    close()
    expect(visits.commands).toBeGreaterThanOrEqual(10_000)
    // A run that tried nothing shows nothing.
    for (const [what, times] of Object.entries(visits)) expect(times, what).toBeGreaterThanOrEqual(20)
  })
})

/** What was left of a lease before the time that passed really. */
function toWholeUnits(reply: OperatedReply): OperatedReply {
  if (!('record' in reply) || reply.record?.state !== 'in-flight') return reply
  const leaseRemainingMs = Math.ceil(reply.record.leaseRemainingMs / UNIT_MS) * UNIT_MS
  // No negative zero.
  return { ...reply, record: { ...reply.record, leaseRemainingMs: leaseRemainingMs + 0 } } as OperatedReply
}
