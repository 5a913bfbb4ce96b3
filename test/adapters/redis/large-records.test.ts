import { Redis } from 'ioredis'
import type { Answer } from 'once-per-key/core'
import { RedisStore } from 'once-per-key/redis'
import { afterAll, beforeEach, describe, expect, test, vi } from 'vitest'
import { startRedis } from '../../support/redis-server.js'
import { claimOf, ownOf } from '../claims.js'

vi.setConfig({ testTimeout: 30_000 })

/** Of a record, the first bytes are read first: whatever is in flight, and the fields of most answers, are among them. */
const FIRST_BYTES = 4_096
const NEXT_BYTES = 16 * FIRST_BYTES

const server = await startRedis('--appendonly', 'no')
const redis = new Redis(server.port)
const store = new RedisStore({ client: redis })
afterAll(async () => {
  redis.disconnect()
  await server.close()
})
beforeEach(() => redis.flushdb())

describe('what is read first ends', () => {
  test.each([FIRST_BYTES, NEXT_BYTES])('before, at and behind the end of a record of %i bytes', async (end) => {
    const without = await lengthOf(answerOf(0, 1_000))
    for (let length = end - 2; length <= end + 2; length++)
      await survives(answerOf(0, length - without + 1_000), length)
  })

  test.each([FIRST_BYTES, NEXT_BYTES])('before, at and behind the end of the fields, at %i bytes', async (end) => {
    const without = (await lengthOf(answerOf(1_000, 10))) - 10
    for (let length = end - 2; length <= end + 2; length++)
      await survives(answerOf(length - without + 1_000, 10), length + 10)
    for (let length = end - 2; length <= end + 2; length++)
      await survives(answerOf(length - without + 1_000, 0), length)
  })
})

test('a record that was cut off where a read ends is damaged', async () => {
  await lengthOf(answerOf(2 * NEXT_BYTES, 10))
  const whole = (await redis.getBuffer(KEY)) as Buffer
  for (const length of [
    FIRST_BYTES - 1,
    FIRST_BYTES,
    FIRST_BYTES + 1,
    NEXT_BYTES,
    whole.length - 10,
    whole.length - 1,
  ]) {
    await redis.set(KEY, whole.subarray(0, length))
    await expect(store.begin('k', claimOf('t')), `${length} bytes`).rejects.toThrow(/UNREADABLE the record is damaged/)
  }
})

const KEY = 'once-per-key:k'

/** ASCII, so that a character is a byte. */
function answerOf(headerBytes: number, bodyBytes: number): Answer {
  const headers = headerBytes === 0 ? [] : [['x-long', 'h'.repeat(headerBytes)] as const]
  return { status: 200, statusMessage: '', headers, body: Buffer.alloc(bodyBytes, 'b') }
}

async function lengthOf(answer: Answer): Promise<number> {
  await redis.del(KEY)
  await store.complete('k', { ...ownOf('t', 'f'), answer })
  return redis.strlen(KEY)
}

async function survives(answer: Answer, length: number): Promise<void> {
  expect(await lengthOf(answer)).toBe(length)
  const begun = await store.begin('k', claimOf('another', 'f'))
  expect(structuredClone(begun)).toEqual({ acquired: false, record: { ...COMPLETED, answer: structuredClone(answer) } })
  const mismatched = await store.begin('k', claimOf('another', 'g'))
  expect(mismatched).toEqual({ acquired: false, record: { ...COMPLETED, answer: null } })
}

const COMPLETED = { state: 'completed', fingerprint: 'f', attempt: 1 }
