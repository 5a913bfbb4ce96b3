import type { Redis } from 'ioredis'
import type { MaybePromise, Store } from 'once-per-key/core'
import { createRequestEngine, type IdempotencyEvent } from 'once-per-key/http'
import { RedisStore } from 'once-per-key/redis'
import { describe, expect, onTestFinished, test, vi } from 'vitest'
import { LIBRARIES } from '../../support/default-clients.js'
import { outcomeOf, runOf } from '../../support/engine-on-trial.js'
import { type RedisServer, startRedis } from '../../support/redis-server.js'
import { answer, type Request, requestFacts } from '../../support/request-facts.js'

// A busy machine, and a time limit that has to pass some times.
vi.setConfig({ testTimeout: 60_000 })

/** A lease that outlasts the test on a machine that is busy. */
const TIMES = { leaseMs: 120_000, storeTimeoutMs: 300 }
/** A thousand claims are unanswered past their limit, and 250 releases; the others were sent before the first were overdue. */
const BATCH = 400
const MOST_UNANSWERED = 1_000 + BATCH + 250

const OUTAGES = [
  {
    name: 'stopped',
    begin: (redis: RedisServer) => redis.signal('SIGSTOP'),
    end: (redis: RedisServer) => redis.signal('SIGCONT'),
  },
  { name: 'down', begin: (redis: RedisServer) => redis.kill(), end: (redis: RedisServer) => redis.restart() },
]
const CASES = LIBRARIES.flatMap((library) =>
  OUTAGES.map((outage) => ({ name: `Redis is ${outage.name}, with ${library.name}`, library, outage })),
)

describe.each(CASES)('$name', ({ library, outage }) => {
  test('thousands of requests leave a bounded queue, and no completion is lost', async () => {
    const redis = await startRedis()
    onTestFinished(() => redis.close())
    const { client, close } = await library.open(redis.port)
    onTestFinished(close)
    const { store, unanswered, copies } = counting(new RedisStore({ client }))
    const events: IdempotencyEvent[] = []
    const engine = createRequestEngine<Request>({
      store,
      scope: () => 'acme',
      ...TIMES,
      onEvent: (event) => events.push(event),
    })
    const send = (key: string) => engine.decide(requestFacts({ key }))
    let keys = 0
    const requests = (count: number) => Promise.all(Array.from({ length: count }, () => send(`k${++keys}`)))

    const ending = await Promise.all(Array.from({ length: 20 }, async (_, i) => runOf(await send(`ending-${i}`))))
    const running = runOf(await send('running'))
    await outage.begin(redis)
    for (const execution of ending) expect(await execution.settle(answer(201, 'paid'))).toEqual({ action: 'send' })
    for (let i = 0; i < 6; i++) {
      expect(new Set((await requests(BATCH)).map(outcomeOf))).toEqual(new Set(['store_unavailable']))
    }
    expect(events.some(({ type }) => type === 'store_paused')).toBe(true)
    const early = unanswered()
    expect(early).toBeLessThanOrEqual(MOST_UNANSWERED + ending.length)

    const startedAt = performance.now()
    while (performance.now() - startedAt < 3_000) {
      await requests(50)
      await new Promise((resolve) => setTimeout(resolve, 50))
    }
    const runs = ending.length + 1
    expect(unanswered() - early).toBeLessThanOrEqual(runs + 10) // At most a renewal for each, and a probe a second.
    if (library.name === 'ioredis') expect(queuedIn(client as Redis)).toBeLessThanOrEqual(MOST_UNANSWERED + 50)
    expect(copies('complete')).toBe(1)

    await outage.end(redis)
    await vi.waitFor(
      () => expect(events.filter(({ type }) => type === 'completed')).toHaveLength(ending.length),
      20_000,
    )
    await vi.waitFor(() => expect(unanswered()).toBe(0), 20_000)
    for (const i of [0, 10, 19]) expect(outcomeOf(await send(`ending-${i}`))).toBe('replay')
    expect(await running.settle(answer(201, 'paid'))).toEqual({ action: 'send' })
    await engine.idle()
    for (const key of ['k1', 'k300', `k${keys}`]) {
      expect(runOf(await send(key)).context.previousOutcome).toMatch(/^(none|failed)$/)
    }
  })
})

/** What ioredis holds: sent and not answered, and not sent yet. */
function queuedIn(client: Redis): number {
  const { commandQueue, offlineQueue } = client as unknown as Record<string, { readonly length: number }>
  return (commandQueue?.length ?? 0) + (offlineQueue?.length ?? 0)
}

/** Counts what a store has not answered, and the most copies of one command at a time. */
function counting(store: Store) {
  const unanswered = new Map<string, number>()
  const most = new Map<string, number>()

  function counted<Terms extends { readonly token: string }, Reply>(
    name: string,
    command: (key: string, terms: Terms) => MaybePromise<Reply>,
  ) {
    return async (key: string, terms: Terms): Promise<Reply> => {
      const id = `${name} ${key}`
      const copies = (unanswered.get(id) ?? 0) + 1
      unanswered.set(id, copies)
      most.set(name, Math.max(most.get(name) ?? 0, copies))
      try {
        return await command.call(store, key, terms)
      } finally {
        unanswered.set(id, (unanswered.get(id) ?? 1) - 1)
      }
    }
  }

  const around: Store = {
    begin: counted('begin', store.begin),
    renew: counted('renew', store.renew),
    complete: counted('complete', store.complete),
    release: counted('release', store.release),
  }
  return {
    store: around,
    unanswered: () => [...unanswered.values()].reduce((sum, count) => sum + count, 0),
    copies: (name: string) => most.get(name) ?? 0,
  }
}
