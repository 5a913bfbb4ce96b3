import { readFileSync } from 'node:fs'
import { Redis } from 'ioredis'
import { RedisStore } from 'once-per-key/redis'
import { afterAll, beforeEach, describe, expect, test } from 'vitest'
import { startRedis } from '../../support/redis-server.js'
import { thoroughly } from '../../support/thoroughness.js'
import { ANSWER, claimOf, ownOf } from '../claims.js'
import { RECORDS } from '../records.js'

// The bytes of version 1, in hex: frozen. A record that was written before a deployment must be read after it, and the
// other way round. The lease is the only time in them: `leaseUntilMs` is what it was.
const GOLDEN = JSON.parse(readFileSync(new URL('golden/records-v1.json', import.meta.url), 'utf8')) as {
  readonly leaseUntilMs: number
  readonly records: Readonly<Record<string, string>>
}
/** A MessagePack integer of 64 bits, as a lease is: behind its type byte. */
const LEASE = lease(GOLDEN.leaseUntilMs)

const server = await startRedis()
const redis = new Redis(server.port)
const store = new RedisStore({ client: redis, prefix: '', prefixMayMeetOthers: true })
afterAll(async () => {
  redis.disconnect()
  await server.close()
})
beforeEach(() => redis.flushdb())

test('there is a golden record of each kind', () => {
  expect(Object.keys(GOLDEN.records)).toEqual(Object.keys(RECORDS))
})

describe.each(Object.entries(RECORDS))('a record of version 1: %s', (name, { write, shown }) => {
  const golden = Buffer.from(GOLDEN.records[name] ?? '', 'hex')

  test('is written as these bytes', async () => {
    const before = await serverTimeMs()
    await write(store, 'k')
    const written = (await redis.getBuffer('k')) as Buffer
    if (!name.startsWith('in-flight')) return expect(written.toString('hex')).toBe(golden.toString('hex'))

    // Only where the lease stands may they differ.
    const at = golden.indexOf(LEASE)
    const leaseUntilMs = Number(written.readBigUInt64BE(at + 1))
    expect(leaseUntilMs).toBeGreaterThanOrEqual(before + 30_000)
    expect(leaseUntilMs).toBeLessThanOrEqual((await serverTimeMs()) + 30_000)
    lease(GOLDEN.leaseUntilMs).copy(written, at)
    expect(written.toString('hex')).toBe(golden.toString('hex'))
  })

  test('is read as what it was', async () => {
    await redis.set('k', golden, 'PX', 600_000)
    const done = await store.renew('k', { ...ownOf('stranger', 'fingerprint'), leaseMs: 1 })
    const record = { ...shown, ...(shown.state === 'in-flight' && { leaseRemainingMs: expect.any(Number) }) }
    expect(structuredClone(done)).toEqual({ ok: false, record })
  })

  test('belongs to its owner', async () => {
    await redis.set('k', golden, 'PX', 600_000)
    const begun = await store.begin('k', claimOf('owner', 'fingerprint'))
    expect(begun.acquired).toBe(shown.state === 'in-flight')
  })
})

// The next release writes version 2: this one must read it.
const NEXT = JSON.parse(readFileSync(new URL('golden/records-v2.json', import.meta.url), 'utf8')) as Readonly<
  Record<string, string>
>

test('there is a golden record of version 2 of each kind', () => {
  expect(Object.keys(NEXT)).toEqual(Object.keys(RECORDS))
})

describe.each(Object.entries(RECORDS))('a record of version 2: %s', (name, { shown }) => {
  const golden = Buffer.from(NEXT[name] ?? '', 'hex')
  const begin = (token: string) => store.begin('k', claimOf(token, 'fingerprint'))

  test('is read as what it was', async () => {
    await redis.set('k', golden, 'PX', 600_000)
    const done = await store.renew('k', { ...ownOf('stranger', 'fingerprint'), leaseMs: 1 })
    const record = { ...shown, ...(shown.state === 'in-flight' && { leaseRemainingMs: expect.any(Number) }) }
    expect(structuredClone(done)).toEqual({ ok: false, record })
  })

  test('belongs to its owner, who completes it', async () => {
    await redis.set('k', golden, 'PX', 600_000)
    expect((await begin('owner')).acquired).toBe(shown.state === 'in-flight')
    const done = await store.complete('k', { ...ownOf('owner', 'fingerprint'), answer: ANSWER })
    expect(done.ok).toBe(shown.state !== 'failed')
    const replay = shown.state === 'in-flight' ? { ...shown, state: 'completed', answer: ANSWER } : shown
    expect(structuredClone(await store.inspect('k'))).toMatchObject(
      Object.fromEntries(Object.entries(replay).filter(([field]) => field !== 'uncertain' || shown.state === 'failed')),
    )
  })

  test('is a store failure once any bit of it is flipped', async () => {
    // Each day one in every byte, now this one and now that.
    for (let bit = 0; bit < golden.length * 8; bit += thoroughly(7, 1)) {
      const flipped = Buffer.from(golden)
      flipped[bit >> 3] = (flipped[bit >> 3] as number) ^ (1 << (bit & 7))
      await redis.set('k', flipped, 'PX', 600_000)
      await expect(begin('stranger'), `bit ${bit}`).rejects.toThrow(/UNREADABLE/)
      expect((await redis.getBuffer('k'))?.equals(flipped)).toBe(true)
    }
  })
})

function lease(ms: number): Buffer {
  const bytes = Buffer.alloc(9, 0xcf)
  bytes.writeBigUInt64BE(BigInt(ms), 1)
  return bytes
}

async function serverTimeMs(): Promise<number> {
  const [seconds, micros] = await redis.time()
  return Number(seconds) * 1000 + Math.floor(Number(micros) / 1000)
}
