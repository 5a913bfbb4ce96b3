import { readFileSync } from 'node:fs'
import { Redis } from 'ioredis'
import { RedisStore } from 'once-per-key/redis'
import { afterAll, beforeEach, describe, expect, test } from 'vitest'
import { startRedis } from '../../support/redis-server.js'
import { claimOf, ownOf } from '../claims.js'
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

function lease(ms: number): Buffer {
  const bytes = Buffer.alloc(9, 0xcf)
  bytes.writeBigUInt64BE(BigInt(ms), 1)
  return bytes
}

async function serverTimeMs(): Promise<number> {
  const [seconds, micros] = await redis.time()
  return Number(seconds) * 1000 + Math.floor(Number(micros) / 1000)
}
