import { describe, expect, test } from 'vitest'
import { LIBRARIES } from '../support/default-clients.js'
import { payUntilDecided } from './pay-until-decided.js'
import { startServersOnRedis } from './servers-on-redis.js'

const { redis, server } = await startServersOnRedis()

describe.each(LIBRARIES)(
  'the owner is stopped past its lease, and another process completes, with $name',
  ({ name: library }) => {
    test.concurrent('when it wakes its signal aborts, and its client gets what the record says', async () => {
      const { owner, heir, key, asked } = await takeOver('signal')
      owner.signal('SIGCONT')
      await owner.told({ type: 'aborted' })
      owner.wake()
      await expectTheOther(await asked, key, heir)
      await owner.told({ type: 'event', event: 'lease_lost' })
      expect(owner.messages).not.toContainEqual({ type: 'event', event: 'completed' })
    }, 30_000)

    test.concurrent('a handler that goes on in the very moment of waking finds its signal aborted', async () => {
      const { owner, heir, key, asked } = await takeOver('moment')
      owner.wake() // It lies in wait until the process runs again.
      owner.signal('SIGCONT')
      expect(await owner.told({ type: 'woken' })).toMatchObject({ signalHasAborted: true })
      await expectTheOther(await asked, key, heir)
    }, 30_000)

    async function takeOver(name: string) {
      const key = `${library}-${name}`
      const common = { library, redisPort: redis.port }
      const [owner, heir] = await Promise.all([
        server.start({ ...common, name: 'owner', waits: true, options: { leaseMs: 1_600, storeTimeoutMs: 400 } }),
        server.start({ ...common, name: 'heir', options: { storeTimeoutMs: 7_500 } }),
      ])
      const asked = owner.pay(key)
      await owner.told({ type: 'run' })
      owner.signal('SIGSTOP')
      const run = await payUntilDecided(heir, key)
      expect([run.status, run.json()]).toEqual([201, { paidBy: 'heir', attempt: 2 }])
      expect(heir.messages).toContainEqual({ type: 'run', attempt: 2, previousOutcome: 'unknown' })
      return { owner, heir, key, asked }
    }

    async function expectTheOther(
      answer: Awaited<ReturnType<typeof payUntilDecided>>,
      key: string,
      heir: Parameters<typeof payUntilDecided>[0],
    ) {
      const retry = await heir.pay(key)
      for (const { status, header, json } of [answer, retry]) {
        expect([status, header('Idempotent-Replayed'), json()]).toEqual([201, 'true', { paidBy: 'heir', attempt: 2 }])
      }
    }
  },
)
