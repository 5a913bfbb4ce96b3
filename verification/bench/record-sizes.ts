import { randomBytes } from 'node:crypto'
import { once } from 'node:events'
import type { AddressInfo } from 'node:net'
import express from 'express'
import { Redis } from 'ioredis'
import { idempotency } from 'once-per-key'
import { RedisStore } from 'once-per-key/redis'

const BODY_BYTES = 1_024

/**
 * What a completed record costs in Redis, in bytes: as the store keeps it, and as it might have been kept. An answer of
 * 1 KiB as an API gives it, under a merchant's scope and a UUID as the key.
 */
export async function recordSizes(port: number): Promise<Readonly<Record<string, number>>> {
  const redis = new Redis(port)
  await redis.flushdb()
  await answerOnce(new RedisStore({ client: redis }))
  const [key] = (await redis.keys('*')) as [string]
  const [token, fingerprint, headers, body] = await partsOf(redis, key)
  const fields = { v: 1, state: 'completed', token, fingerprint, attempt: 1, status: 201, statusMessage: '', headers }

  async function size(write: (key: string) => Promise<unknown>): Promise<number> {
    const other = key.replace(/.$/, '_') // as long as the original
    await write(other)
    await redis.pexpire(other, 86_400_000)
    const bytes = await redis.memory('USAGE', other, 'SAMPLES', 0)
    await redis.del(other)
    return bytes as number
  }

  const sizes = {
    'as the store keeps it': (await redis.memory('USAGE', key, 'SAMPLES', 0)) as number,
    'a hash of its fields': await size((other) => redis.hset(other, { ...fields, body })),
    'a hash of two: the fields in one (JSON), the body': await size((other) =>
      redis.hset(other, { r: JSON.stringify(fields), b: body }),
    ),
    'one string of JSON, the body as text (which loses bytes)': await size((other) =>
      redis.set(other, JSON.stringify({ ...fields, body: body.toString('utf8') })),
    ),
    'one string of JSON, the body in base64': await size((other) =>
      redis.set(other, JSON.stringify({ ...fields, body: body.toString('base64') })),
    ),
  }
  redis.disconnect()
  return sizes
}

/** Through the middleware, so that the record is one of real life. */
async function answerOnce(store: RedisStore): Promise<void> {
  const app = express()
  app.post('/api/service/payout/create', idempotency({ store, scope: () => 'merchant_4f9a1c7e2b' }), (_req, res) => {
    const payout = { id: 'payout_8d1f', amountMinor: 129_900, currency: 'EUR', status: 'pending', reference: '' }
    const missing = BODY_BYTES - JSON.stringify(payout).length
    const reference = randomBytes(missing).toString('base64').slice(0, missing)
    res
      .status(201)
      .location('/api/service/payout/payout_8d1f')
      .json({ ...payout, reference })
  })
  const server = app.listen(0, '127.0.0.1')
  await once(server, 'listening')
  const { port } = server.address() as AddressInfo
  const response = await fetch(`http://127.0.0.1:${port}/api/service/payout/create`, {
    method: 'POST',
    headers: { 'Idempotency-Key': '0b6ff2c3-6f4e-4a52-9d6c-8f1f3f0c9f77' },
  })
  const bytes = (await response.arrayBuffer()).byteLength
  server.close()
  if (response.status !== 201 || bytes !== BODY_BYTES) throw new Error(`Answered ${response.status}, ${bytes} bytes.`)
}

async function partsOf(redis: Redis, key: string): Promise<[string, string, string, Buffer]> {
  const parts = await redis.callBuffer('EVAL', PARTS, '1', key)
  const [token, fingerprint, headers, body] = parts as [Buffer, Buffer, Buffer, Buffer]
  return [`${token}`, `${fingerprint}`, `${headers}`, body]
}

const PARTS = `
local value = redis.call('GET', KEYS[1])
local rest, fields = cmsgpack.unpack_one(value, 1)
return { fields[2], fields[3], fields[7], string.sub(value, rest + 1) }
`
