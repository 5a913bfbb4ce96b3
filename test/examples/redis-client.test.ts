import { afterEach, beforeEach, expect, test, vi } from 'vitest'
import { type RedisServer, startRedis } from '../support/redis-server.js'
import { openGround, type RedisGround } from './redis-ground.js'

let server: RedisServer
let ground: RedisGround

beforeEach(async () => {
  server = await startRedis()
  ground = await openGround(server)
})

afterEach(async () => {
  await ground.close()
  await server.close()
})

const ENTRY = { id: 'sub_1', name: 'Reserve', currency: 'EUR', createdAt: '2026-01-01' } as const

const write = () => ground.ledger.transaction('mer_acme', async (books) => books.put('subaccount', ENTRY))

test('what cannot be sent fails at once, and is not sent later', async () => {
  server.signal('SIGKILL')
  await vi.waitFor(async () => expect(await ground.availability.check()).toBe(false))
  await expect(write()).rejects.toMatchObject({ reason: expect.stringContaining('writeable') })
  await back()
  expect(await read()).toBeUndefined()
}, 20_000)

test('what was sent when Redis went fails with it, and is not sent again', async () => {
  server.signal('SIGSTOP')
  const failure = write().catch((error: unknown) => error)
  server.signal('SIGKILL')
  expect(await failure).toMatchObject({ mayHaveCommitted: true, reason: expect.stringContaining('retries') })
  await back()
  expect(await read()).toBeUndefined()
}, 20_000)

async function back(): Promise<void> {
  await server.restart()
  await vi.waitFor(async () => expect(await ground.availability.check()).toBe(true), { timeout: 10_000 })
}

function read() {
  return ground.ledger.transaction('mer_acme', (books) => books.get('subaccount', ENTRY.id))
}
