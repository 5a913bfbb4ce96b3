import { readdirSync } from 'node:fs'
import { Redis } from 'ioredis'
import { createRequestEngine, type IdempotencyEvent, singleTenant } from 'once-per-key/http'
import { afterAll, describe, expect, test } from 'vitest'
import { settle } from '../../examples/recipes/settle.js'
import { outcomeOf, runOf, TIMES } from '../support/engine-on-trial.js'
import { fakeClock } from '../support/fake-clock.js'
import { mapStore } from '../support/map-store.js'
import { startRedis } from '../support/redis-server.js'
import { requestFacts } from '../support/request-facts.js'
import { page, ROOT, read } from './pages.js'

const guide = page('docs/production.md')

describe('the page’s operator example', () => {
  const KEY = 'order-1'
  const scope = singleTenant()
  const booksWith = (payout: { id: string } | null) => ({ payoutFor: async () => payout })

  async function stalled() {
    const clock = fakeClock()
    const store = mapStore(clock.now)
    const once = createRequestEngine({ store, scope: singleTenant, unknownOutcome: 'refuse', ...TIMES })
    runOf(await once.decide(requestFacts({ key: KEY })))
    clock.advance(TIMES.leaseMs)
    return { once, send: () => once.decide(requestFacts({ key: KEY })) }
  }

  test('settles a key by what the books say: the payout was made, and is the answer', async () => {
    const { once, send } = await stalled()
    expect(await settle(once, booksWith({ id: 'po_1' }), scope, KEY)).toBe('settled')
    expect(await send()).toMatchObject({
      action: 'replay',
      answer: { status: 201, body: Buffer.from('{"id":"po_1"}') },
    })
    expect(await settle(once, booksWith(null), scope, KEY)).toBe('left as it is: completed')
  })

  test('settles a key by what the books say: no payout was made, and the next request runs', async () => {
    const { once, send } = await stalled()
    expect(outcomeOf(await send())).toBe('outcome_unknown')
    expect(await settle(once, booksWith(null), scope, KEY)).toBe('settled')
    expect(runOf(await send()).context.previousOutcome).toBe('failed')
    expect(await settle(once, booksWith(null), scope, KEY)).toBe('left as it is: in-flight')
  })

  test('has nothing to settle where there is no record', async () => {
    const { once } = await stalled()
    expect(await settle(once, booksWith(null), scope, 'another')).toBe('nothing to settle')
  })
})

describe('the page’s settings of Redis', async () => {
  const settings = read('examples/recipes/stores/redis.conf')
    .split('\n')
    .filter((line) => line !== '' && !line.startsWith('#'))
    .map((line) => line.split(' ') as [string, string])
  const server = await startRedis(...settings.flatMap(([name, value]) => [`--${name}`, value]))
  const redis = new Redis(server.port)
  afterAll(async () => {
    redis.disconnect()
    await server.close()
  })

  test('are lines for the memory, for the file, and for replicas', () => {
    expect(settings.length).toBe(6)
  })

  test.each(settings)('%s %s is one that Redis knows', async (name, value) => {
    const bytes = value.replace(/^(\d+)gb$/, (_, gigabytes) => String(Number(gigabytes) * 2 ** 30))
    expect(await redis.config('GET', name)).toEqual([name, bytes])
  })
})

test('the page’s alerts are about events that there are', () => {
  const table = guide.slice(guide.indexOf('| event |'), guide.indexOf('## What warns by itself'))
  const rows = table.matchAll(/^\| (`.*?) \|/gm)
  const named = [...rows].flatMap(([, first = '']) => [...first.matchAll(/`(\w+)`/g)].map(([, name]) => name))
  expect(named.length).toBeGreaterThan(10)
  for (const name of named) expect(Object.keys(EVENTS)).toContain(name)
})

test('the page lists each warning that the library prints, and whether a listener silences it', () => {
  const files = ['src', 'adapters'].flatMap((folder) =>
    readdirSync(`${ROOT}${folder}`, { recursive: true, encoding: 'utf8' })
      .filter((name) => name.endsWith('.ts'))
      .map((name) => `${folder}/${name}`),
  )
  const printed = files.flatMap((file) => {
    const isSilenced = SILENCED_BY_A_LISTENER.includes(file)
    return [...read(file).matchAll(/'(ONCE_PER_KEY_\w+)'/g)].map(
      ([, code]) => `${code} ${isSilenced ? 'not ' : ''}printed`,
    )
  })
  const listed = [...guide.matchAll(/^\| `(ONCE_PER_KEY_\w+)` \|.*\| (.*printed) \|$/gm)]
  expect(listed.map(([, code, how]) => `${code} ${how}`).sort()).toEqual(printed.sort())
})

/** The default listeners of an engine, of a runner, and of a webhook receiver. */
const SILENCED_BY_A_LISTENER = [
  'src/core/events/events.ts',
  'src/run/runner-options.ts',
  'src/webhooks/receiver/delivery/receiver-event.ts',
]

/** Complete by the compiler. */
const EVENTS: Record<IdempotencyEvent['type'], true> = {
  claimed: true,
  completed: true,
  failed: true,
  replayed: true,
  step_done: true,
  step_resumed: true,
  step_pending: true,
  resolved: true,
  in_flight: true,
  mismatched: true,
  answer_not_kept: true,
  outcome_unknown: true,
  key_expired: true,
  rejected: true,
  lease_lost: true,
  store_failed: true,
  transaction_not_committed: true,
  store_paused: true,
  unprotected: true,
  completion_pending: true,
  completion_given_up: true,
  option_failed: true,
  evicted: true,
  answer_dropped: true,
  eviction_policy: true,
  connections_exhausted: true,
  sweep_failed: true,
}
