import { describe, expect, test } from 'vitest'
import { LIBRARIES } from '../support/default-clients.js'
import { payUntilDecided } from './pay-until-decided.js'
import { startServersOnRedis } from './servers-on-redis.js'

/** Long enough that it still lives when a busy machine has killed its owner. */
const LEASE = { leaseMs: 2_000, storeTimeoutMs: 500 }

const { redis, server } = await startServersOnRedis()

describe.each(LIBRARIES)('the owner is killed (-9), with $name', ({ name: library }) => {
  test.concurrent('the key is refused while its lease lives, then free, and the next run is told that the outcome is unknown', async () => {
    const { key, heir } = await killOwner('rerun')
    const refused = await heir.pay(key)
    expect([refused.status, refused.header('Retry-After'), refused.json()]).toEqual([
      409,
      expect.stringMatching(/^[12]$/), // No more than what remains of the lease.
      expect.objectContaining({ code: 'in_flight' }),
    ])
    expect(heir.messages.filter(({ type }) => type === 'run')).toEqual([])

    const run = await payUntilDecided(heir, key)
    expect([run.status, run.json()]).toEqual([201, { paidBy: 'heir', attempt: 2 }])
    expect(heir.messages.filter(({ type }) => type === 'run')).toEqual([
      { type: 'run', attempt: 2, previousOutcome: 'unknown' },
    ])
    expect((await heir.pay(key)).header('Idempotent-Replayed')).toBe('true')
  }, 30_000)

  test.concurrent("with unknownOutcome 'refuse' it is refused for good", async () => {
    const { key, heir } = await killOwner('refuse')
    const refused = await payUntilDecided(heir, key)
    expect([refused.status, refused.header('X-Should-Retry'), refused.json()]).toEqual([
      409,
      'false',
      expect.objectContaining({ code: 'outcome_unknown' }),
    ])
    expect(heir.messages.filter(({ type }) => type === 'run')).toEqual([])
  }, 30_000)

  async function killOwner(unknownOutcome: 'rerun' | 'refuse') {
    const key = `${library}-${unknownOutcome}`
    const options = { ...LEASE, unknownOutcome }
    const [owner, heir] = await Promise.all([
      server.start({ name: 'owner', library, redisPort: redis.port, options, waits: true }),
      server.start({ name: 'heir', library, redisPort: redis.port, options }),
    ])
    const unanswered = expect(owner.pay(key)).rejects.toThrow('connection closed')
    await owner.told({ type: 'run' })
    await owner.kill()
    await unanswered
    return { key, heir }
  }
})
