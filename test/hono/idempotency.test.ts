import { type Context, Hono } from 'hono'
import { cors } from 'hono/cors'
import { HTTPException } from 'hono/http-exception'
import { requestId } from 'hono/request-id'
import { streamSSE } from 'hono/streaming'
import { type IdempotencyContext, type IdempotencyEvent, idempotency, singleTenant } from 'once-per-key/hono'
import { MemoryStore } from 'once-per-key/memory'
import { describe, expect, expectTypeOf, test } from 'vitest'
import { gate } from '../support/gate.js'

const post = (app: Hono, { key = 'k', json = { amount: 100 }, headers = {} as Record<string, string> } = {}) =>
  app.request('/payouts', {
    method: 'POST',
    headers: { 'Content-Type': 'application/json', 'Idempotency-Key': key, ...headers },
    body: JSON.stringify(json),
  })

function protection(options: Partial<Parameters<typeof idempotency>[0]> = {}) {
  const events: IdempotencyEvent[] = []
  const onEvent = (event: IdempotencyEvent) => void events.push(event)
  return { once: idempotency({ store: new MemoryStore(), scope: singleTenant, ...options, onEvent }), events }
}

test('the context of the run is typed, and functions among the options get Hono’s context', async () => {
  type Bindings = { Variables: { merchantId: string } }
  const once = idempotency<Bindings>({
    store: new MemoryStore(),
    scope: (c) => c.get('merchantId'),
    fingerprint: async (c) => (await c.req.json()).amount,
  })
  const app = new Hono<Bindings>()
  app.use(async (c, next) => {
    c.set('merchantId', c.req.header('X-Merchant') ?? '')
    await next()
  })
  app.post('/payouts', once, async (c) => {
    const run = c.get('idempotency')
    expectTypeOf(run).toEqualTypeOf<IdempotencyContext | undefined>()
    return c.json({ scope: run?.scope, body: await c.req.json() }, 201)
  })
  const send = (merchant: string, note: string) =>
    post(app as unknown as Hono, { json: { amount: 1, note } as never, headers: { 'X-Merchant': merchant } })
  expect(await (await send('acme', 'first')).json()).toEqual({ scope: 'acme', body: { amount: 1, note: 'first' } })
  expect(await (await send('acme', 'second')).json()).toEqual({ scope: 'acme', body: { amount: 1, note: 'first' } })
  expect(await (await send('globex', 'third')).json()).toEqual({ scope: 'globex', body: { amount: 1, note: 'third' } })
})

describe('headers', () => {
  test('of other middleware are those of each response, and are not stored', async () => {
    const { once } = protection()
    const app = new Hono()
    app.use(cors({ origin: (origin) => origin, credentials: true }), requestId())
    app.use(async (c, next) => {
      c.header('X-Before', c.req.header('X-Try') ?? '')
      c.header('X-Changed', 'before')
      c.header('Set-Cookie', `session=${c.req.header('X-Try')}`)
      await next()
      c.header('X-After', c.req.header('X-Try') ?? '')
    })
    app.post('/payouts', once, (c) => {
      c.header('X-Changed', 'by the handler')
      c.header('X-Receipt', '17')
      return c.json({ paid: true }, 201)
    })
    const [first, replay] = [
      await post(app, { headers: { 'X-Try': '1', Origin: 'https://a.example' } }),
      await post(app, { headers: { 'X-Try': '2', Origin: 'https://b.example' } }),
    ]
    const seen = (response: Response) =>
      [
        'X-Before',
        'X-After',
        'X-Changed',
        'X-Receipt',
        'Set-Cookie',
        'Access-Control-Allow-Origin',
        'Content-Type',
      ].map((name) => response.headers.get(name))
    const own = ['by the handler', '17'] as const
    expect(seen(first)).toEqual(['1', '1', ...own, 'session=1', 'https://a.example', 'application/json'])
    expect(seen(replay)).toEqual(['2', '2', ...own, 'session=2', 'https://b.example', 'application/json'])
    expect(replay.headers.get('Idempotent-Replayed')).toBe('true')
    expect(first.headers.get('X-Request-Id')).not.toBe(replay.headers.get('X-Request-Id'))
    expect([first.status, replay.status, await replay.text()]).toEqual([201, 201, '{"paid":true}'])
  })

  test('of problems are those of middleware, too', async () => {
    const { once } = protection({ required: true })
    const app = new Hono()
    app.use(cors())
    app.post('/payouts', once, (c) => c.text('paid'))
    const refusal = await app.request('/payouts', { method: 'POST' })
    expect(await refusal.json()).toMatchObject({ code: 'key_missing' })
    expect(refusal.headers.get('Access-Control-Allow-Origin')).toBe('*')
    expect(refusal.headers.get('Content-Type')).toBe('application/problem+json')
  })
})

describe('an error', () => {
  test.each([
    { status: 409 as const, because: 'refused' },
    { status: 503 as const, because: 'status' },
  ])('that is an HTTPException of $status is judged by that', async ({ status, because }) => {
    const { once, events } = protection()
    const app = new Hono()
    app.post('/payouts', once, () => {
      throw new HTTPException(status, { message: 'no money' })
    })
    const response = await post(app)
    expect([response.status, await response.text()]).toEqual([status, 'no money'])
    expect(events).toContainEqual(expect.objectContaining({ type: 'failed', because }))
  })

  test('that `onError` of a sub-application answers with a success is one', async () => {
    const { once } = protection()
    const app = new Hono()
    const payouts = new Hono()
    payouts.onError((_error, c) => c.text('accepted', 202))
    payouts.post('/payouts', () => {
      throw new Error('later')
    })
    app.use(once)
    app.route('/', payouts)
    expect((await post(app)).status).toBe(202)
    const replay = await post(app)
    expect([replay.status, replay.headers.get('Idempotent-Replayed')]).toEqual([202, 'true'])
  })

  test('that is no Error passes through, and has left the outcome unknown', async () => {
    const { once, events } = protection()
    const app = new Hono()
    app.post('/payouts', once, () => {
      throw 'no money'
    })
    await expect(post(app)).rejects.toBe('no money')
    expect(events).toContainEqual(expect.objectContaining({ type: 'failed', uncertain: true, because: 'no_answer' }))
  })

  test('of the library’s reaches `onError`: the middleware is mounted twice', async () => {
    const { once } = protection()
    const app = new Hono()
    const seen: unknown[] = []
    app.onError((error, c) => {
      seen.push((error as { code?: string }).code)
      return c.text('sorry', 500)
    })
    app.use(once)
    app.post('/payouts', once, (c) => c.text('paid'))
    expect((await post(app)).status).toBe(500)
    expect(seen).toEqual(['mounted_twice'])
  })
})

describe('a body', () => {
  test('that a validator has read before is compared, and reaches the handler', async () => {
    const { once } = protection()
    const app = new Hono()
    const validate = async (c: Context, next: () => Promise<void>) => {
      await c.req.json()
      await next()
    }
    app.post('/payouts', validate, once, async (c) => c.json(await c.req.json()))
    expect(await (await post(app)).json()).toEqual({ amount: 100 })
    expect(await (await post(app, { json: { amount: 200 } })).json()).toMatchObject({ code: 'mismatched' })
    expect((await post(app)).headers.get('Idempotent-Replayed')).toBe('true')
  })

  test.each([
    { how: 'behind the back of Hono', read: (c: Context) => c.req.raw.text() },
    { how: 'as a form', read: (c: Context) => c.req.formData() },
  ])('that was read $how is misuse', async ({ read }) => {
    const { once } = protection()
    const app = new Hono()
    let code: string | undefined
    app.onError((error, c) => {
      code = (error as { code?: string }).code
      return c.text('sorry', 500)
    })
    const reading = async (c: Context, next: () => Promise<void>) => {
      await read(c)
      await next()
    }
    app.post('/payouts', reading, once, (c) => c.text('paid'))
    const headers = { 'Content-Type': 'application/x-www-form-urlencoded', 'Idempotency-Key': 'k' }
    await app.request('/payouts', { method: 'POST', headers, body: 'amount=1' })
    expect(code).toBe('raw_body_consumed')
  })
})

test('an event stream of Hono’s own is told that its client has left', async () => {
  const { once } = protection()
  const left = gate()
  const app = new Hono()
  app.post('/payouts', once, (c) =>
    streamSSE(c, async (stream) => {
      stream.onAbort(() => left.open())
      await stream.writeSSE({ data: 'one' })
      await left.opened
    }),
  )
  const response = await post(app)
  const reader = (response.body as ReadableStream<Uint8Array>).getReader()
  expect(new TextDecoder().decode((await reader.read()).value)).toBe('data: one\n\n')
  await reader.cancel()
  await left.opened
  await once.idle()
})

test('where the platform stops behind a response, it is told what is pending', async () => {
  const { once } = protection()
  const app = new Hono()
  app.post('/payouts', once, (c) => c.text('paid'))
  const pending: Promise<unknown>[] = []
  const executionContext = {
    waitUntil: (promise: Promise<unknown>) => void pending.push(promise),
    passThroughOnException() {},
    props: {},
  }
  await app.request('/payouts', { method: 'POST', headers: { 'Idempotency-Key': 'k' } }, {}, executionContext)
  expect(pending).not.toEqual([])
  await Promise.all(pending)
})

test.each<[what: string, init: RequestInit, asked: number]>([
  ['without a key', { method: 'POST' }, 0],
  ['of a method that is not covered', { method: 'GET', headers: { 'Idempotency-Key': 'k' } }, 0],
  ['with a key', { method: 'POST', headers: { 'Idempotency-Key': 'k' } }, 1],
])(
  'the execution context, of which Hono throws an error where there is none, is asked for: %s',
  async (_what, init, asked) => {
    const { once } = protection()
    const app = new Hono()
    let times = 0
    app.use(async (c, next) => {
      Object.defineProperty(c, 'executionCtx', {
        get() {
          times++
          throw new Error('This context has no ExecutionContext')
        },
      })
      await next()
    })
    app.all('/payouts', once, (c) => c.text('paid'))
    expect(await (await app.request('/payouts', init)).text()).toBe('paid')
    expect(times).toBe(asked)
  },
)

test.each([{}, { waitUntil: undefined }])(
  'an execution context without waitUntil changes nothing: %j',
  async (context) => {
    const { once } = protection()
    const app = new Hono()
    app.use(once)
    app.all('/payouts', (c) => c.text('paid'))
    for (const init of [
      { method: 'GET' },
      { method: 'POST' },
      { method: 'POST', headers: { 'Idempotency-Key': 'k' } },
    ]) {
      const response = await app.request('/payouts', init, {}, context as never)
      expect([response.status, await response.text()]).toEqual([200, 'paid'])
    }
  },
)

test('a key in two lines is refused', async () => {
  const { once } = protection()
  const app = new Hono()
  app.post('/payouts', once, (c) => c.text('paid'))
  const headers = new Headers([
    ['Idempotency-Key', 'a'],
    ['Idempotency-Key', 'b'],
  ])
  expect((await app.request('/payouts', { method: 'POST', headers })).status).toBe(400)
})
