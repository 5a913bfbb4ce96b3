import { Hono } from 'hono'
import { methodOverride } from 'hono/method-override'
import { idempotency as forFetch, singleTenant } from 'once-per-key/fetch'
import { idempotency, universalCommerce } from 'once-per-key/hono'
import { MemoryStore } from 'once-per-key/memory'
import { describe, expect, test } from 'vitest'
import { gate } from '../support/gate.js'

// What dispatches a request again behind the library, as methodOverride does, sent it into its own claim: the first request got 409
// `mismatched`.

const KEY = { 'Idempotency-Key': 'order-1' }

const OVERRIDES = [
  {
    by: 'a field of its form',
    options: {},
    request: () => formOf({ _method: 'DELETE', id: 'po_1' }),
  },
  {
    by: 'a header',
    options: { header: 'X-Method' },
    request: () =>
      new Request('https://api.example/payouts', { method: 'POST', headers: { ...KEY, 'X-Method': 'DELETE' } }),
  },
  {
    by: 'its query',
    options: { query: '_method' },
    request: () => new Request('https://api.example/payouts?_method=DELETE', { method: 'POST', headers: KEY }),
  },
]

function setting() {
  const errors: unknown[] = []
  const events: string[] = []
  const deleted: string[] = []
  const onEvent = ({ type }: { readonly type: string }) => void events.push(type)
  const once = idempotency({ store: new MemoryStore(), scope: singleTenant, onEvent })
  const app = new Hono()
  app.onError((error, c) => {
    errors.push((error as { code?: unknown }).code)
    return c.text('failed', 500)
  })
  return { app, once, errors, events, deleted }
}

describe.each(OVERRIDES)('a method that is overridden by $by', ({ options, request }) => {
  test('is misuse behind the library, and the handler does not run', async () => {
    const { app, once, errors, deleted } = setting()
    app.use(once).use(methodOverride({ app, ...options }))
    app.delete('/payouts', (c) => {
      deleted.push('a payout')
      return c.text('deleted')
    })
    expect((await app.fetch(request())).status).toBe(500)
    expect([errors, deleted]).toEqual([['mounted_twice'], []])
  })

  test('is protected in front of the library', async () => {
    const { app, once, errors, events, deleted } = setting()
    app.use(methodOverride({ app, ...options })).use(once)
    app.delete('/payouts', (c) => {
      deleted.push('a payout')
      return c.text('deleted')
    })
    for (const replayed of [null, 'true']) {
      const response = await app.fetch(request())
      expect([response.status, response.headers.get('Idempotent-Replayed')]).toEqual([200, replayed])
    }
    expect([errors, events, deleted]).toEqual([[], ['claimed', 'completed', 'replayed'], ['a payout']])
  })
})

describe('a request that a handler dispatches', () => {
  /** A handler at `/outer` that sends one request on to `/inner`, and answers with its status. */
  function dispatching(inner: () => Request, profile = {}) {
    const { app, errors } = setting()
    const once = idempotency({
      store: new MemoryStore(),
      scope: (c) => c.req.header('X-Merchant') ?? 'acme',
      ...profile,
    })
    app.use(once)
    app.post('/outer', async (c) => c.json((await app.fetch(inner())).status))
    app.post('/inner', (c) => c.text('paid'))
    return { app, errors }
  }
  const post = (path: string, headers: Record<string, string> = KEY) =>
    new Request(`https://api.example${path}`, { method: 'POST', headers })

  test('with its own key is misuse', async () => {
    const { app, errors } = dispatching(() => post('/inner', { 'Idempotency-Key': '"order-1"' }))
    expect([await (await app.fetch(post('/outer'))).json(), errors]).toEqual([500, ['mounted_twice']])
  })

  test.each([
    { what: 'with a key of its own', inner: () => post('/inner', { 'Idempotency-Key': 'order-2' }) },
    { what: 'with its key in another scope', inner: () => post('/inner', { ...KEY, 'X-Merchant': 'other' }) },
    { what: 'without a key', inner: () => post('/inner', {}) },
  ])('$what is another operation', async ({ inner }) => {
    const { app, errors } = dispatching(inner)
    expect([await (await app.fetch(post('/outer'))).json(), errors]).toEqual([200, []])
  })

  test('with its key on another path is another operation, where keys belong to paths', async () => {
    const { app, errors } = dispatching(() => post('/inner'), { profile: universalCommerce })
    expect([await (await app.fetch(post('/outer'))).json(), errors]).toEqual([200, []])
  })

  test('through another operation is misuse, too', async () => {
    const once = forFetch({ store: new MemoryStore(), scope: singleTenant })
    const codes: unknown[] = []
    const innermost = once(() => new Response('paid'))
    const inner = once(() =>
      innermost(post('/innermost')).catch(({ code }) => {
        codes.push(code)
        return new Response('refused', { status: 500 })
      }),
    )
    const outer = once(() => inner(post('/inner', { 'Idempotency-Key': 'order-2' })))
    expect((await outer(post('/outer'))).status).toBe(500)
    expect(codes).toEqual(['mounted_twice'])
  })

  test('is a retry once the run has ended, and a duplicate where another request sends it', async () => {
    const once = forFetch({ store: new MemoryStore(), scope: singleTenant })
    const end = gate()
    let later: Promise<Response> | undefined
    const answered = gate()
    const pay = once(async () => {
      later = answered.opened.then(() => pay(post('/outer')))
      await end.opened
      return new Response('paid')
    })
    const first = pay(post('/outer'))
    const duplicate = await pay(post('/outer'))
    expect([duplicate.status, await duplicate.json()]).toMatchObject([409, { code: 'in_flight' }])
    end.open()
    expect((await first).status).toBe(200)
    answered.open()
    expect((await later)?.headers.get('Idempotent-Replayed')).toBe('true')
  })
})

function formOf(fields: Record<string, string>): Request {
  return new Request('https://api.example/payouts', { method: 'POST', headers: KEY, body: new URLSearchParams(fields) })
}
