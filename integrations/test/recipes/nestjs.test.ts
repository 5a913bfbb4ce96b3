import 'reflect-metadata'
import { once } from 'node:events'
import { setTimeout as pause } from 'node:timers/promises'
import { fileURLToPath } from 'node:url'
import type { CanActivate, INestApplication } from '@nestjs/common'
import { NestFactory } from '@nestjs/core'
import { describe, expect, onTestFinished, test, vi } from 'vitest'
import { gate } from '../../../test/support/gate.js'
import { runNode } from '../../../test/support/run-node.js'
import { Bank } from '../../recipes/nestjs/bank.js'
import { createApp } from '../../recipes/nestjs/fastify.js'
import { PaymentsModule } from '../../recipes/nestjs/payments.module.js'

/** How an application is made, and whose request it is, by the merchant's name. */
const PLATFORMS: readonly {
  readonly platform: string
  create(): Promise<INestApplication>
  by(merchant: string): Record<string, string>
}[] = [
  {
    platform: 'Express',
    create: () => NestFactory.create(PaymentsModule, { logger: false }),
    by: (merchant) => ({ Authorization: `Bearer demo_${merchant}` }),
  },
  {
    platform: 'Fastify',
    async create() {
      const app = await createApp()
      app.useLogger(false)
      return app
    },
    by: (merchant) => ({ 'X-Merchant': merchant }),
  },
]

describe.each(PLATFORMS)('the recipe for Nest on $platform', ({ create, by }) => {
  async function start(...guards: CanActivate[]) {
    const app = await create()
    app.useGlobalGuards(...guards)
    await app.listen(0, '127.0.0.1')
    onTestFinished(() => app.close())
    const origin = await app.getUrl()
    const post = async (body: object, headers: Record<string, string> = {}, signal?: AbortSignal) => {
      const response = await fetch(`${origin}/payouts`, {
        method: 'POST',
        headers: {
          ...by('acme'),
          'Content-Type': 'application/json',
          'Idempotency-Key': 'order-1',
          ...headers,
        },
        body: JSON.stringify(body),
        signal: signal ?? null,
      })
      const replayed = response.headers.get('Idempotent-Replayed') === 'true'
      return { status: response.status, replayed, json: await response.json().catch(() => null) }
    }
    return { app, bank: app.get(Bank), post }
  }

  test('a retry is given the first answer, and Nest’s handler does not run', async () => {
    const { bank, post } = await start()
    const first = await post({ amount: 100 })
    const retry = await post({ amount: 100 })
    expect(first).toMatchObject({ status: 201, replayed: false, json: { amount: 100 } })
    expect(retry).toEqual({ ...first, replayed: true })
    expect(bank.transfers).toHaveLength(1)
  })

  test('another body is refused', async () => {
    const { bank, post } = await start()
    await post({ amount: 100 })
    expect(await post({ amount: 200 })).toMatchObject({ status: 409, json: { code: 'mismatched' } })
    expect(bank.transfers).toHaveLength(1)
  })

  test('an exception is answered by Nest, and frees the key', async () => {
    const { post } = await start()
    expect(await post({ amount: 0 })).toMatchObject({ status: 400, json: { error: 'Bad Request' } })
    expect(await post({ amount: 100 })).toMatchObject({ status: 201, replayed: false })
  })

  test('authentication comes first, and says whose key it is', async () => {
    const { bank, post } = await start()
    expect(await post({ amount: 100 })).toMatchObject({ status: 201 })
    expect(await post({ amount: 100 }, by(''))).toMatchObject({ status: 401 })
    const other = await post({ amount: 100 }, by('globex'))
    expect(other).toMatchObject({ status: 201, replayed: false })
    expect(bank.transfers).toHaveLength(2)
  })

  test('a replay is given before any guard: what decides who may have it is middleware', async () => {
    const canActivate = vi.fn(() => true)
    const { post } = await start({ canActivate })
    await post({ amount: 100 })
    expect(await post({ amount: 100 })).toMatchObject({ replayed: true })
    expect(canActivate).toHaveBeenCalledTimes(1)
  })

  test('to shut down, the application waits for a handler whose client has left', async () => {
    const { app, bank, post } = await start()
    const { opened, open } = gate()
    const transfer = vi.spyOn(bank, 'transfer').mockImplementation(async (amount) => {
      await opened
      return { id: 'po_1', amount }
    })
    const client = new AbortController()
    const left = post({ amount: 100 }, {}, client.signal).catch(() => 'left')
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

test('it compiles with the decorators that Nest’s users have', { timeout: 120_000 }, async () => {
  const path = (relative: string) => fileURLToPath(new URL(relative, import.meta.url))
  const compiler = path('../../../node_modules/typescript/bin/tsc')
  const { exitCode, stdout } = await runNode(compiler, '-p', path('../../recipes/nestjs'))
  expect(stdout).toBe('')
  expect(exitCode).toBe(0)
})
