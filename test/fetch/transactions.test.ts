import { RESPONSE_ALREADY_SENT } from '@hono/node-server/utils/response'
import { type IdempotencyContext, idempotency, singleTenant } from 'once-per-key/fetch'
import type { Pool, PoolClient } from 'pg'
import { beforeEach, describe, expect, test, vi } from 'vitest'
import { openPool, openStore, storeOn } from '../adapters/postgres/open-store.js'

vi.setConfig({ testTimeout: 60_000, hookTimeout: 60_000 })

const { pool, query, url } = await openStore()
const application: Pool = openPool(url)
const store = storeOn({ pool, transactions: application })
await query('CREATE TABLE effects (id text PRIMARY KEY)')
beforeEach(() => query('TRUNCATE once_per_key.records, effects'))

const once = idempotency({ store, scope: singleTenant, required: true })
const effects = async () => (await query('SELECT id FROM effects')).map(({ id }) => id)
const insert = (tx: PoolClient, id: string) => tx.query('INSERT INTO effects VALUES ($1)', [id])

type Handler = (run: IdempotencyContext) => Promise<Response>

async function post(handler: Handler) {
  const headers = { 'Idempotency-Key': 'k' }
  const request = new Request('http://test/payouts', { method: 'POST', headers })
  const response = await once.handle(request, (_request, run) => handler(run as IdempotencyContext))
  return {
    status: response.status,
    text: await response.text(),
    replayed: response.headers.get('Idempotent-Replayed') === 'true',
  }
}

describe('in a transaction of the handler’s', () => {
  test('the Response that the work returns is committed with its effects, and replayed', async () => {
    const handler: Handler = (run) =>
      store.transaction(run, async (tx) => {
        await insert(tx, 'paid')
        return Response.json({ paid: true }, { status: 201 })
      })
    expect(await post(handler)).toEqual({ status: 201, text: '{"paid":true}', replayed: false })
    expect(await effects()).toEqual(['paid'])
    expect(await post(handler)).toEqual({ status: 201, text: '{"paid":true}', replayed: true })
  })

  test('a 204 is, whose body throws when it is read: that of @hono/node-server, if it was given an empty one', async () => {
    const thrown = (): never => {
      throw new TypeError('Invalid response status code 204')
    }
    const parts = ['body', 'bodyUsed', 'clone'].map((name) => [name, { get: thrown }])
    const handler: Handler = (run) =>
      store.transaction(run, async (tx) => {
        await insert(tx, 'paid')
        return Object.defineProperties(new Response(null, { status: 204 }), Object.fromEntries(parts))
      })
    for (const replayed of [false, true]) expect(await post(handler)).toEqual({ status: 204, text: '', replayed })
    expect(await effects()).toEqual(['paid'])
  })

  test('nothing that the handler does behind the COMMIT changes the answer', async () => {
    const answers = [
      async () => new Response('another'),
      async () => {
        throw new Error('too late')
      },
    ]
    for (const after of answers) {
      await query('TRUNCATE once_per_key.records, effects')
      const told = await post(async (run) => {
        const response = await store.transaction(run, async (tx) => {
          await insert(tx, 'paid')
          return new Response('paid')
        })
        expect(await response.text()).toBe('paid')
        return after()
      })
      expect(told).toEqual({ status: 200, text: 'paid', replayed: false })
    }
  })

  test('a failure rolls back, and is sent', async () => {
    const told = await post((run) =>
      store.transaction(run, async (tx) => {
        await insert(tx, 'paid')
        return new Response('no money', { status: 422 })
      }),
    )
    expect(told).toEqual({ status: 422, text: 'no money', replayed: false })
    expect(await effects()).toEqual([])
  })

  test('a throw rolls back, discards the answer, and the run goes on', async () => {
    const told = await post(async (run) => {
      const failing = store.transaction(run, async (tx) => {
        await insert(tx, 'first')
        await insert(tx, 'first')
        return new Response('first')
      })
      await expect(failing).rejects.toThrow(/duplicate key/)
      return store.transaction(run, async (tx) => {
        await insert(tx, 'second')
        return new Response('second')
      })
    })
    expect(told.text).toBe('second')
    expect(await effects()).toEqual(['second'])
  })

  test.each([
    { what: 'no Response', answer: () => 'paid', code: 'transaction_unanswered' },
    {
      what: 'an event stream',
      answer: () => new Response('data: 1\n\n', { headers: { 'Content-Type': 'text/event-stream' } }),
      code: 'transaction_streamed',
    },
    { what: 'what was written below Fetch', answer: () => RESPONSE_ALREADY_SENT, code: 'transaction_streamed' },
    {
      what: 'more than is kept',
      answer: () => new Response(new Uint8Array(2 ** 20 + 1)),
      code: 'transaction_streamed',
    },
  ])('that answers with $what is misuse, and rolled back', async ({ answer, code }) => {
    const handling = post(
      (run) =>
        store.transaction(run, async (tx) => {
          await insert(tx, 'paid')
          return answer()
        }) as Promise<Response>,
    )
    await expect(handling).rejects.toMatchObject({ code })
    expect(await effects()).toEqual([])
  })
})
