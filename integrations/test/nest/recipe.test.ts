import 'reflect-metadata'
import { once } from 'node:events'
import { setTimeout as pause } from 'node:timers/promises'
import { fileURLToPath } from 'node:url'
import type { Type } from '@nestjs/common'
import { Redis } from 'ioredis'
import { idempotency, singleTenant } from 'once-per-key'
import { RedisStore } from 'once-per-key/redis'
import { describe, expect, onTestFinished, test, vi } from 'vitest'
import { gate } from '../../../test/support/gate.js'
import { newDatabase } from '../../../test/support/postgres-server.js'
import { startRedis } from '../../../test/support/redis-server.js'
import { runNode } from '../../../test/support/run-node.js'
import { PLATFORMS, startNest } from './start-nest.js'

/** Compiled with the decorators that Nest's users have, and not by the project's own configuration. */
const recipe = async (path: string) => import(fileURLToPath(new URL(`../../../${path}`, import.meta.url)))
await recipe('integrations/recipes/nestjs/merchant.guard.ts')
await recipe('integrations/recipes/nestjs/payouts.controller.ts')
const { PaymentsModule } = await recipe('integrations/recipes/nestjs/payments.module.ts')
const { RedisPaymentsModule } = await recipe('integrations/recipes/nestjs/redis-payments.module.ts')
const { EntriesModule } = await recipe('integrations/recipes/nestjs/entries.module.ts')
const { Bank } = (await recipe('integrations/recipes/nestjs/bank.ts')) as {
  readonly Bank: Type<{ transfers: unknown[]; transfer(amount: number): unknown }>
}

let orders = 0

describe.each(PLATFORMS)('the recipe for Nest on %s', (platform) => {
  async function start() {
    const { app, post } = await startNest(platform, PaymentsModule)
    // The store of the recipe is as old as its module, so each test has a key of its own.
    const key = `order-${++orders}`
    const send = (body: object, merchant = 'acme', signal?: AbortSignal) =>
      post('/payouts', body, { 'X-Merchant': merchant, 'Idempotency-Key': key }, signal)
    return { app, bank: app.get(Bank), send }
  }

  test('a retry is given the first answer, and Nest’s handler does not run', async () => {
    const { bank, send } = await start()
    const first = await send({ amount: 100 })
    const retry = await send({ amount: 100 })
    expect(first).toMatchObject({ status: 201, replayed: false, json: { amount: 100 } })
    expect(retry).toEqual({ ...first, replayed: true })
    expect(bank.transfers).toHaveLength(1)
  })

  test('another body is refused', async () => {
    const { bank, send } = await start()
    await send({ amount: 100 })
    expect(await send({ amount: 200 })).toMatchObject({ status: 409, json: { code: 'mismatched' } })
    expect(bank.transfers).toHaveLength(1)
  })

  test('an exception is answered by Nest, and frees the key', async () => {
    const { send } = await start()
    expect(await send({ amount: 0 })).toMatchObject({ status: 400, json: { error: 'Bad Request' } })
    expect(await send({ amount: 100 })).toMatchObject({ status: 201, replayed: false })
  })

  test('a guard comes first, and says whose key it is', async () => {
    const { bank, send } = await start()
    expect(await send({ amount: 100 })).toMatchObject({ status: 201 })
    expect(await send({ amount: 100 }, '')).toMatchObject({ status: 401 })
    expect(await send({ amount: 100 }, 'globex')).toMatchObject({ status: 201, replayed: false })
    expect(bank.transfers).toHaveLength(2)
  })

  test('to shut down, the application waits for a handler whose client has left', async () => {
    const { app, bank, send } = await start()
    const { opened, open } = gate()
    const transfer = vi.spyOn(bank, 'transfer').mockImplementation(async () => opened)
    const client = new AbortController()
    const left = send({ amount: 100 }, 'acme', client.signal).catch(() => 'left')
    await expect.poll(() => transfer.mock.calls.length).toBe(1)
    client.abort()
    expect(await left).toBe('left')

    const order: string[] = []
    const closed = app.close().then(() => order.push('closed'))
    await once(app.getHttpServer(), 'close')
    await Promise.race([closed, pause(50)])
    order.push('opened')
    open()
    await closed
    expect(order).toEqual(['opened', 'closed'])
  })
})

describe.each(PLATFORMS)('the recipe for Nest on %s, with Redis', (platform) => {
  test('a run whose client has left is stored before the client of Redis is closed', async () => {
    const redis = await startRedis()
    onTestFinished(() => redis.close())
    vi.stubEnv('REDIS_URL', redis.url)
    const { app, post } = await startNest(platform, RedisPaymentsModule)
    const { opened, open } = gate()
    const bank = app.get(Bank)
    const transfer = vi.spyOn(bank, 'transfer').mockImplementation(async () => {
      await opened
      return { id: 'po_1', amount: 100 }
    })
    const client = new AbortController()
    const headers = { 'X-Merchant': 'acme', 'Idempotency-Key': 'k' }
    const left = post('/payouts', { amount: 100 }, headers, client.signal).catch(() => 'left')
    await expect.poll(() => transfer.mock.calls.length).toBe(1)
    client.abort()
    expect(await left).toBe('left')
    const closed = app.close()
    await once(app.getHttpServer(), 'close')
    open()
    await closed

    const other = new Redis(redis.url)
    onTestFinished(() => other.disconnect())
    const operator = idempotency({ store: new RedisStore({ client: other, prefix: 'payments:' }), scope: singleTenant })
    expect(await operator.inspect({ scope: 'acme', key: 'k' })).toMatchObject({
      state: 'completed',
      answer: { status: 201 },
    })
  })
})

describe.each(PLATFORMS)('the recipe for Nest on %s, in a transaction of Postgres', (platform) => {
  test('an entry is made once, and its answer is sent after the COMMIT', async () => {
    const { server, url } = await newDatabase()
    const query = (sql: string) => server.run(sql, new URL(url).pathname.slice(1))
    await query('CREATE TABLE entries (id bigint GENERATED ALWAYS AS IDENTITY, amount integer)')
    vi.stubEnv('DATABASE_URL', url)
    const { post } = await startNest(platform, EntriesModule)
    const send = () => post('/entries', { amount: 100 }, { 'Idempotency-Key': 'k' })
    const first = await send()
    expect(first).toMatchObject({ status: 201, replayed: false, json: { id: '1' } })
    expect(await send()).toEqual({ ...first, replayed: true })
    expect(await query('SELECT amount FROM entries')).toEqual([{ amount: 100 }])
  })
})

test('it compiles with the decorators that Nest’s users have', { timeout: 120_000 }, async () => {
  const path = (relative: string) => fileURLToPath(new URL(relative, import.meta.url))
  const compiler = path('../../../node_modules/typescript/bin/tsc')
  const { exitCode, stdout } = await runNode(compiler, '-p', path('../../recipes/nestjs'))
  expect(stdout).toBe('')
  expect(exitCode).toBe(0)
})
