import { once as eventOf } from 'node:events'
import type { AddressInfo } from 'node:net'
import { TRPCClientError } from '@trpc/client'
import { initTRPC, TRPCError } from '@trpc/server'
import { fetchRequestHandler } from '@trpc/server/adapters/fetch'
import type { Express } from 'express'
import { idempotency } from 'once-per-key/fetch'
import { MemoryStore } from 'once-per-key/memory'
import { runner } from 'once-per-key/run'
import { describe, expect, onTestFinished, test, vi } from 'vitest'
import { gate } from '../../../test/support/gate.js'
import { paymentsClient } from '../../recipes/trpc/client.js'
import { keyedRouter } from '../../recipes/trpc/procedure.js'
import { paymentsApp, type paymentsRouter } from '../../recipes/trpc/server.js'

const made = () => {
  const transfer = vi.fn(async (amount: number, key?: string) => ({ id: `${amount} under ${key ? 'a key' : 'none'}` }))
  return { transfer }
}

async function listen(app: Express): Promise<string> {
  const server = app.listen(0, '127.0.0.1')
  onTestFinished(() => void server.close())
  await eventOf(server, 'listening')
  return `http://127.0.0.1:${(server.address() as AddressInfo).port}/trpc`
}

async function serve(bank = made(), onAnswer: (status: number) => void = () => {}) {
  const store = new MemoryStore()
  const app = paymentsApp({
    bank,
    store,
    authenticate(req, res, next) {
      req.merchantId = 'acme'
      res.once('finish', () => onAnswer(res.statusCode))
      next()
    },
  })
  const url = await listen(app)
  const client = paymentsClient(url)
  const pay = (key: string | undefined, amount = 100) => client.createPayment.mutate({ amount }, { context: { key } })
  return { bank, url, pay }
}

/** What the client throws. */
const thrown = (call: Promise<unknown>) =>
  call.then(
    () => expect.unreachable(),
    (error) => {
      expect(error).toBeInstanceOf(TRPCClientError)
      const { message, data, meta } = error as TRPCClientError<ReturnType<typeof paymentsRouter>>
      const { response } = (meta ?? {}) as { response?: Response }
      return { message, code: data?.code, status: response?.status }
    },
  )

describe('the middleware in front of tRPC on Express', () => {
  test('a mutation runs once under its key, and without a key each time', async () => {
    const { bank, pay } = await serve()
    expect(await pay('k')).toEqual({ id: '100 under a key' })
    expect(await pay('k')).toEqual({ id: '100 under a key' })
    expect(bank.transfer).toHaveBeenCalledTimes(1)
    expect([await pay(undefined), await pay(undefined)]).toEqual([{ id: '100 under none' }, { id: '100 under none' }])
    expect(bank.transfer).toHaveBeenCalledTimes(3)
  })

  test('a refusal has the form of tRPC’s errors, so its client says what is wrong', async () => {
    const { pay } = await serve()
    await pay('k')
    expect(await thrown(pay('k', 200))).toMatchObject({
      message: expect.stringContaining('Use a new key for a new operation'),
      code: 'mismatched',
      status: 409,
    })
  })

  test('a BAD_REQUEST frees the key, and its client does not try again', async () => {
    const { bank, pay } = await serve()
    expect(await thrown(pay('k', -1))).toMatchObject({ code: 'BAD_REQUEST', status: 400 })
    expect(await pay('k')).toEqual({ id: '100 under a key' })
    expect(bank.transfer).toHaveBeenCalledTimes(1)
  })

  test('an INTERNAL_SERVER_ERROR leaves the outcome unknown, and its client tries again under the key', async () => {
    const bank = made()
    bank.transfer.mockRejectedValueOnce(new Error('the bank is away'))
    const { pay } = await serve(bank)
    expect(await pay('k')).toEqual({ id: '100 under a key' })
    const [first, second] = bank.transfer.mock.calls
    expect(second).toEqual(first) // Also the bank's own key.
  })

  test('without a key it is sent once, whatever its client cannot know', async () => {
    const bank = made()
    bank.transfer.mockRejectedValue(new Error('the bank is away'))
    const { pay } = await serve(bank)
    expect(await thrown(pay(undefined))).toMatchObject({ code: 'INTERNAL_SERVER_ERROR' })
    expect(await thrown(pay(''))).toMatchObject({ code: 'INTERNAL_SERVER_ERROR' })
    expect(bank.transfer).toHaveBeenCalledTimes(2)
  })

  test('while it is unknown another input is refused', async () => {
    const bank = made()
    bank.transfer.mockRejectedValue(new Error('the bank is away'))
    const { url, pay } = await serve(bank)
    await fetch(`${url}/createPayment`, {
      method: 'POST',
      headers: { 'Content-Type': 'application/json', 'Idempotency-Key': 'k' },
      body: '{"amount":100}',
    })
    expect(await thrown(pay('k', 200))).toMatchObject({ code: 'mismatched' })
  })

  test('a duplicate of a running mutation waits, and gets its result', async () => {
    const { opened, open } = gate()
    const running = gate()
    const bank = made()
    bank.transfer.mockImplementationOnce(async () => {
      running.open()
      await opened
      return { id: 'first' }
    })
    const statuses: number[] = []
    const { pay } = await serve(bank, (status) => {
      statuses.push(status)
      open() // Once the duplicate was refused.
    })
    const first = pay('k')
    await running.opened
    expect([await pay('k'), await first]).toEqual([{ id: 'first' }, { id: 'first' }])
    expect(statuses).toEqual([409, 200, 200])
    expect(bank.transfer).toHaveBeenCalledTimes(1)
  })

  test.each([
    ['of a batch', {}, 207],
    ['of a batch that is streamed', { 'trpc-accept': 'application/jsonl' }, 200],
  ])('%s one key stands for all: they are kept together, also those that failed', async (_name, more, status) => {
    const bank = made()
    bank.transfer.mockRejectedValueOnce(new Error('the bank is away'))
    const { url } = await serve(bank)
    const batch = () =>
      fetch(`${url}/createPayment,createPayment?batch=1`, {
        method: 'POST',
        headers: { 'Content-Type': 'application/json', 'Idempotency-Key': 'k', ...more },
        body: '{"0":{"amount":1},"1":{"amount":2}}',
      })
    const first = await batch()
    expect(await first.text()).toContain('the bank is away')
    const second = await batch()
    expect([first.status, second.status, second.headers.get('Idempotent-Replayed')]).toEqual([status, status, 'true'])
    expect(bank.transfer).toHaveBeenCalledTimes(2)
  })
})

test('over Fetch, the handler that serves a router is protected by `once`, and its queries pass', async () => {
  const once = idempotency({ store: new MemoryStore(), scope: () => 'acme' })
  const t = initTRPC.create()
  let runs = 0
  const router = t.router({ pay: t.procedure.mutation(() => ++runs), list: t.procedure.query(() => ++runs) })
  const handler = once((req) => fetchRequestHandler({ endpoint: '/trpc', req, router }))
  const headers = { 'Content-Type': 'application/json', 'Idempotency-Key': 'k' }
  const call = async (path: string, method: string) =>
    (await handler(new Request(`http://localhost/trpc/${path}`, { method, headers }))).json()
  expect(await call('pay', 'POST')).toEqual({ result: { data: 1 } })
  expect(await call('pay', 'POST')).toEqual({ result: { data: 1 } })
  expect([await call('list', 'GET'), await call('list', 'GET')]).toEqual([
    { result: { data: 2 } },
    { result: { data: 3 } },
  ])
})

describe('`runner` inside of a procedure', () => {
  const serveKeyed = (bank = made()) => {
    const router = keyedRouter(runner({ store: new MemoryStore(), name: 'createPayment' }), bank)
    return { bank, caller: router.createCaller({ accountId: 'acme' }) }
  }

  test('its result is what a repeat gets', async () => {
    const { bank, caller } = serveKeyed()
    const calls = [
      await caller.createPayment({ key: 'k', amount: 1 }),
      await caller.createPayment({ key: 'k', amount: 1 }),
    ]
    expect(calls).toEqual([{ id: '1 under a key' }, { id: '1 under a key' }])
    expect(bank.transfer).toHaveBeenCalledTimes(1)
  })

  test('a refusal is an error of tRPC that says what to do', async () => {
    const { caller } = serveKeyed()
    await caller.createPayment({ key: 'k', amount: 1 })
    const refused = caller.createPayment({ key: 'k', amount: 2 })
    await expect(refused).rejects.toBeInstanceOf(TRPCError)
    await expect(refused).rejects.toMatchObject({ code: 'CONFLICT', message: expect.stringContaining('another input') })
  })

  test('in a batch each mutation has a key of its own', async () => {
    const bank = made()
    const once = runner({ store: new MemoryStore(), name: 'createPayment' })
    const router = keyedRouter(once, bank)
    const batch = async () => {
      const req = new Request('http://localhost/trpc/createPayment,createPayment?batch=1', {
        method: 'POST',
        headers: { 'Content-Type': 'application/json' },
        body: '{"0":{"key":"a","amount":1},"1":{"key":"b","amount":2}}',
      })
      const createContext = () => ({ accountId: 'acme' })
      return (await fetchRequestHandler({ endpoint: '/trpc', req, router, createContext })).json()
    }
    bank.transfer.mockRejectedValueOnce(new Error('the bank is away'))
    expect(await batch()).toMatchObject([
      { error: { data: { httpStatus: 500 } } },
      { result: { data: { id: '2 under a key' } } },
    ])
    expect(await batch()).toMatchObject([{ result: { data: { id: '1 under a key' } } }, { result: {} }])
    expect(bank.transfer).toHaveBeenCalledTimes(3)
  })
})
