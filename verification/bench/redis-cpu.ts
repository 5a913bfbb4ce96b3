import { Redis } from 'ioredis'
import { RedisStore } from '../../adapters/redis/index.js'
import { spreadOf } from './statistics.js'

const REQUESTS = 20_000
const BATCH = 500
const ROUNDS = 5
const RETENTION_MS = 86_400_000

/** What Redis itself needs for a first request and for a replay, in µs of CPU: by hand, with two SET and a GET, and by the store. */
export async function measureRedisCpu(port: number): Promise<Readonly<Record<string, number>>> {
  const redis = new Redis(port, { enableAutoPipelining: true })
  const store = new RedisStore({ client: redis })
  const ways: Record<string, (key: string) => Promise<unknown>> = {
    'first, by hand: SET NX and SET': async (key) => {
      await redis.set(`hand:${key}`, FINGERPRINT, 'PX', 30_000, 'NX')
      await redis.set(`hand:${key}`, STORED, 'PX', RETENTION_MS)
    },
    'first, the store': async (key) => {
      await store.begin(key, { ...OWN, leaseMs: 30_000, unknownOutcome: 'rerun' })
      await store.complete(key, { ...OWN, attempt: 1, uncertain: false, answer: ANSWER })
    },
    'replay, by hand: GET': (key) => redis.get(`hand:${key}`),
    'replay, the store': (key) =>
      store.begin(key, { ...OWN, token: 'other', leaseMs: 30_000, unknownOutcome: 'rerun' }),
  }
  const seen: Record<string, number[]> = {}
  for (let round = 0; round < ROUNDS; round++) {
    await redis.flushdb()
    for (const [name, send] of Object.entries(ways)) {
      const before = await readCpuMicros(redis)
      for (let from = 0; from < REQUESTS; from += BATCH) {
        await Promise.all(Array.from({ length: BATCH }, (_, i) => send(`merchant:order-${from + i}`)))
      }
      seen[name] = [...(seen[name] ?? []), ((await readCpuMicros(redis)) - before) / REQUESTS]
    }
  }
  redis.disconnect()
  return Object.fromEntries(Object.entries(seen).map(([name, values]) => [name, spreadOf(values).median]))
}

const FINGERPRINT = `v1.${'f'.repeat(43)}`
const OWN = { token: 'AAAAAAAAAAAAAAAA', scope: 'merchant', fingerprint: FINGERPRINT, retentionMs: RETENTION_MS }
const ANSWER = {
  status: 201,
  statusMessage: '',
  headers: [
    ['Content-Type', 'application/json; charset=utf-8'],
    ['Location', '/payouts/payout_8d1f'],
  ] as const,
  body: Buffer.from(JSON.stringify({ id: 'payout_8d1f', amountMinor: 129_900, reference: 'r'.repeat(100) })),
}
const STORED = JSON.stringify({ ...ANSWER, body: String(ANSWER.body) })

async function readCpuMicros(redis: Redis): Promise<number> {
  const told = await redis.info('cpu')
  const read = (name: string) => Number(new RegExp(`^used_cpu_${name}:(\\S+)`, 'm').exec(told)?.[1])
  return (read('user') + read('sys')) * 1e6
}
