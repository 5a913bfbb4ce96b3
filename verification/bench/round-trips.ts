import { setTimeout as pause } from 'node:timers/promises'
import type { Redis } from 'ioredis'
import { heardDuring } from '../../test/support/redis-monitor.js'
import { ANSWER_BYTES, FAILS } from './payout.js'
import { pay } from './probe.js'
import type { Service } from './service.js'

/** Redis commands that one request takes, by what becomes of it. */
export interface RoundTrips {
  readonly first: number
  readonly replay: number
  /** The key is another request's. */
  readonly refusal: number
  readonly failure: number
}

/** What Redis itself hears, without what scripts call. */
export async function countRoundTrips({ port, call }: Service, redis: Redis): Promise<RoundTrips> {
  async function during(request: () => Promise<unknown>): Promise<number> {
    await pause(20) // Some write behind the answer.
    const heard = await heardDuring(redis, async () => {
      await request()
      await pause(20)
    })
    return heard.filter(({ source }) => source !== 'lua').length
  }
  const failing = { headers: { [FAILS]: '1' } }

  await redis.flushall()
  await call('reset', { phase: 'first', answerBytes: ANSWER_BYTES })
  // What is asked once: scripts, settings.
  await pay(port, 'warm')
  await pay(port, 'warm too', failing)
  const first = await during(() => pay(port, 'one'))
  const refusal = await during(() => pay(port, 'one', { amountMinor: 129_901 }))
  const failure = await during(() => pay(port, 'two', failing))
  await call('reset', { phase: 'replay', answerBytes: ANSWER_BYTES })
  await pay(port, 'warm')
  const replay = await during(() => pay(port, 'one'))
  return { first, replay, refusal, failure }
}
