import { Redis } from 'ioredis'
import { RedisStore, type SendCommand } from 'once-per-key/redis'
import { afterAll, expect, test } from 'vitest'
import { createSender } from '../../../adapters/redis/client.js'
import { heardDuring } from '../../support/redis-monitor.js'
import { startRedis } from '../../support/redis-server.js'
import { claimOf, ownOf } from '../claims.js'

const MIB = 2 ** 20

const server = await startRedis()
const redis = new Redis(server.port)
afterAll(async () => {
  redis.disconnect()
  await server.close()
})

/** What a reply takes on its way. */
let replyBytes = 0
const send = createSender(redis) as SendCommand
const store = new RedisStore({
  async sendCommand(key, args) {
    const reply = await send(key, args)
    replyBytes = sizeOf(reply)
    return reply
  },
})

// A refusal of 257 bytes cost Redis a copy of the stored answer, and the network its transfer: 1 MiB for each request.
test('whoever comes with another fingerprint is refused without a look at the stored answer', async () => {
  const answer = { status: 200, statusMessage: '', headers: [], body: Buffer.alloc(MIB, 'a') }
  await store.begin('k', claimOf('owner'))
  await store.complete('k', { ...ownOf('owner'), answer })

  for (const [token, fingerprint, isShown] of [
    ['another', 'f', true],
    ['another', 'g', false],
    ['owner', 'g', false],
  ] as const) {
    const commands = {
      begin: () => store.begin('k', claimOf(token, fingerprint)),
      renew: () => store.renew('k', { ...ownOf(token, fingerprint), leaseMs: 1_000 }),
      release: () => store.release('k', { ...ownOf(token, fingerprint), failedMs: 1_000 }),
    }
    for (const [name, command] of Object.entries(commands)) {
      await command() // By now the server knows the script.
      const read = await bytesReadBy(command)
      const seen = `${name} of ${token} with ${fingerprint}`
      if (isShown) expect(Math.min(read, replyBytes), seen).toBeGreaterThan(MIB)
      else expect(Math.max(read, replyBytes), seen).toBeLessThan(8_192)
      expect(await command()).toMatchObject({
        record: { state: 'completed', answer: isShown ? { status: 200 } : null },
      })
    }
  }
})

/** How many bytes a script reads of the values: the server tells what its scripts call, so the calls are made once more. */
async function bytesReadBy(command: () => Promise<unknown>): Promise<number> {
  const heard = await heardDuring(redis, command)
  const reads = heard.filter(({ name, source }) => source === 'lua' && name.startsWith('get'))
  let bytes = 0
  for (const { name, args } of reads) bytes += sizeOf(await redis.callBuffer(name, ...args))
  return bytes
}

function sizeOf(reply: unknown): number {
  if (Array.isArray(reply)) return reply.reduce((bytes, part) => bytes + sizeOf(part), 0)
  return Buffer.isBuffer(reply) ? reply.byteLength : 8
}
