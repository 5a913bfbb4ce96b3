import { once as event } from 'node:events'
import { type AddressInfo, connect } from 'node:net'
import { Readable } from 'node:stream'
import { gzipSync } from 'node:zlib'
import Koa, { type Context } from 'koa'
import {
  CertainFailure,
  type IdempotencyContext,
  type IdempotencyEvent,
  idempotency,
  singleTenant,
} from 'once-per-key/koa'
import { MemoryStore } from 'once-per-key/memory'
import { describe, expect, expectTypeOf, onTestFinished, test } from 'vitest'
import { A_DRIVER } from '../adapters/sqlite/drivers.js'
import { openStore } from '../adapters/sqlite/open-store.js'
import { gate } from '../support/gate.js'

type Options = Partial<Parameters<typeof idempotency>[0]>

/** An application of earlier middleware, the protection and a handler; `errors` are those that Koa was told. */
async function serve(
  handler: Koa.Middleware,
  { before = [], ...options }: Options & { before?: Koa.Middleware[] } = {},
) {
  const events: IdempotencyEvent[] = []
  const errors: unknown[] = []
  const once = idempotency({
    store: new MemoryStore(),
    scope: singleTenant,
    ...options,
    onEvent: (each) => events.push(each),
  })
  const app = new Koa()
  app.on('error', (error) => errors.push(error))
  for (const middleware of before) app.use(middleware)
  const server = app.use(once).use(handler).listen(0, '127.0.0.1')
  await event(server, 'listening')
  onTestFinished(async () => {
    server.closeAllConnections()
    server.close()
    await once.idle()
  })
  const { port } = server.address() as AddressInfo
  async function post(key = 'k', headers: Record<string, string> = {}) {
    const response = await fetch(`http://127.0.0.1:${port}/payouts`, {
      method: 'POST',
      headers: { 'Idempotency-Key': key, ...headers },
    })
    return {
      status: response.status,
      statusText: response.statusText,
      headers: response.headers,
      body: await response.text(),
      replayed: response.headers.get('idempotent-replayed'),
    }
  }
  return { port, post, once, events, errors, types: () => events.map(({ type }) => type) }
}

test('the context of the run is typed, and functions among the options get Koa’s context', async () => {
  const { post } = await serve(
    (ctx) => {
      expectTypeOf(ctx.idempotency).toEqualTypeOf<IdempotencyContext | undefined>()
      ctx.body = ctx.idempotency?.scope
    },
    { scope: (ctx: Context) => ctx.get('X-Merchant') },
  )
  expect((await post('k', { 'X-Merchant': 'acme' })).body).toBe('acme')
  expect(await post('k', { 'X-Merchant': 'globex' })).toMatchObject({ body: 'globex', replayed: null })
})

test('what earlier middleware does to an answer is not stored, and is done to a replay as well', async () => {
  const before: Koa.Middleware = async (ctx, next) => {
    ctx.set('X-Before', ctx.get('X-Try'))
    await next()
    ctx.set('X-After', ctx.get('X-Try'))
    if (ctx.acceptsEncodings('gzip', 'identity') !== 'gzip') return
    const bytes = Buffer.isBuffer(ctx.body) ? ctx.body : Buffer.from(JSON.stringify(ctx.body))
    ctx.set('Content-Encoding', 'gzip')
    ctx.body = gzipSync(bytes)
  }
  const { post } = await serve(
    (ctx) => {
      ctx.status = 201
      ctx.body = { paid: true }
    },
    { before: [before] },
  )
  const first = await post('k', { 'X-Try': '1', 'Accept-Encoding': 'gzip' })
  const replay = await post('k', { 'X-Try': '2', 'Accept-Encoding': 'identity' })
  const seen = ({ status, headers, body }: typeof first) => [
    status,
    body,
    ...['X-Before', 'X-After', 'Content-Type', 'Content-Encoding'].map((name) => headers.get(name)),
  ]
  const json = 'application/json; charset=utf-8'
  expect(seen(first)).toEqual([201, '{"paid":true}', '1', '1', json, 'gzip'])
  expect(seen(replay)).toEqual([201, '{"paid":true}', '2', '2', json, null])
  expect(replay.replayed).toBe('true')
})

test('a response that nobody gave a body is replayed with the one that Koa gives it', async () => {
  const { post } = await serve((ctx) => {
    ctx.status = 202
  })
  expect((await post()).body).toBe('Accepted')
  expect(await post()).toMatchObject({ status: 202, body: 'Accepted', replayed: 'true' })
})

test.each([
  { body: undefined, sent: 'Accepted', type: 'text/plain; charset=utf-8' },
  { body: null, sent: '', type: null },
])('a content type that was set beside the body $body is replaced as by Koa, also in the replay', async (koa) => {
  const { post } = await serve((ctx) => {
    if (koa.body === null) ctx.body = null
    ctx.status = 202
    ctx.type = 'html'
  })
  for (const replayed of [null, 'true']) {
    const reply = await post()
    expect([reply.body, reply.headers.get('Content-Type'), reply.replayed]).toEqual([koa.sent, koa.type, replayed])
  }
})

test.each([
  { name: 'that Koa was told', isKoas: true },
  { name: 'of Node’s response', isKoas: false },
])('a status $name stays without a body, and so does its message', async ({ isKoas }) => {
  const { post, events } = await serve((ctx) => {
    if (isKoas) ctx.status = 503
    else ctx.res.statusCode = 503
    ctx.message = 'Later'
  })
  expect(await post()).toMatchObject({ status: 503, statusText: 'Later', body: 'Later' })
  expect(events).toContainEqual(expect.objectContaining({ type: 'failed', because: 'status' }))
})

describe('a request that nobody answered', () => {
  const nobody: Koa.Middleware = (_ctx, next) => next()

  test('is answered 404, and has failed certainly', async () => {
    const { post, events } = await serve(nobody)
    expect(await post()).toMatchObject({ status: 404, statusText: 'Not Found', body: 'Not Found', replayed: null })
    expect(events).toContainEqual(expect.objectContaining({ type: 'failed', uncertain: false, because: 'refused' }))
    expect(await post()).toMatchObject({ status: 404, replayed: null })
  })

  test('gets the page that earlier middleware has for it', async () => {
    const page: Koa.Middleware = async (ctx, next) => {
      await next()
      if (ctx.status !== 404 || ctx.body) return
      ctx.status = 404
      ctx.body = { page: 'not found' }
    }
    const { post } = await serve(nobody, { before: [page] })
    expect(await post()).toMatchObject({ status: 404, body: '{"page":"not found"}' })
  })

  test('gets the same text again if that counts as success', async () => {
    const { post } = await serve(nobody, { isSuccess: () => true })
    const [first, replay] = [await post(), await post()]
    expect([first.replayed, replay.replayed]).toEqual([null, 'true'])
    expect([replay.status, replay.body, replay.headers.get('Content-Type')]).toEqual([
      404,
      'Not Found',
      first.headers.get('Content-Type'),
    ])
  })
})

describe('an error', () => {
  test.each([
    { name: 'ctx.throw(422)', status: 422, because: 'refused' },
    { name: 'ctx.throw(503)', status: 503, because: 'status' },
  ])('by $name is judged by its status', async ({ status, because }) => {
    const { post, events } = await serve((ctx) => ctx.throw(status, 'no'))
    expect((await post()).status).toBe(status)
    expect(events).toContainEqual(expect.objectContaining({ type: 'failed', because }))
  })

  test('that is a CertainFailure is answered with its status and its message', async () => {
    const { post } = await serve(() => {
      throw new CertainFailure('The card was declined.', { status: 402 })
    })
    expect(await post()).toMatchObject({ status: 402, body: 'The card was declined.' })
  })

  test('is judged by what an error handler before the middleware answers', async () => {
    const before: Koa.Middleware = async (ctx, next) => {
      try {
        await next()
      } catch {
        ctx.status = 409
        ctx.body = 'refused'
      }
    }
    const failing = () => {
      throw new Error('no money')
    }
    const { post, events } = await serve(failing, { before: [before] })
    expect(await post()).toMatchObject({ status: 409, body: 'refused' })
    expect(events).toContainEqual(expect.objectContaining({ type: 'failed', uncertain: false, because: 'refused' }))
  })
})

test('a handler that writes to Node’s own response is held as well', async () => {
  const { post } = await serve((ctx) => {
    ctx.respond = false
    ctx.res.writeHead(200, { 'Content-Type': 'text/plain' })
    setImmediate(() => ctx.res.end('by hand'))
  })
  expect((await post()).body).toBe('by hand')
  expect(await post()).toMatchObject({ body: 'by hand', replayed: 'true' })
})

test('a handler does not hear that its client has left, and its stream is read to its end', async () => {
  const started = gate()
  const left = gate()
  const { port, post, once } = await serve(async (ctx) => {
    started.open()
    await left.opened
    ctx.body = ReadableStream.from([Buffer.from('pa'), Buffer.from('id')])
  })
  const client = connect(port, '127.0.0.1')
  client.write('POST /payouts HTTP/1.1\r\nHost: a\r\nIdempotency-Key: k\r\nContent-Length: 0\r\n\r\n')
  await started.opened
  client.destroy()
  await event(client, 'close')
  left.open()
  await once.idle()
  expect(await post()).toMatchObject({ body: 'paid', replayed: 'true' })
})

test('mounted twice is misuse, and nothing is stored', async () => {
  const { post, errors, types } = await serve(idempotency({ store: new MemoryStore(), scope: singleTenant }))
  expect((await post()).status).toBe(500)
  expect(errors).toEqual([expect.objectContaining({ code: 'mounted_twice' })])
  expect(types()).toEqual(['claimed', 'failed'])
})

describe('in a transaction of the handler’s own', () => {
  async function withBooks(
    handler: (ctx: Context, pay: () => void, store: ReturnType<typeof openStore>['store']) => unknown,
  ) {
    const { database, store, query } = openStore(A_DRIVER)
    database.exec('PRAGMA journal_mode = WAL; CREATE TABLE effects (id TEXT)')
    await store.migrate()
    const pay = () => database.exec("INSERT INTO effects VALUES ('e1')")
    const served = await serve((ctx) => handler(ctx, pay, store), { store })
    return { ...served, effects: () => query('SELECT * FROM effects').length }
  }
  const runOf = (ctx: Context) => ctx.idempotency as IdempotencyContext

  test('what is in ctx when its work returns is the answer, whatever follows', async () => {
    const { post, effects, errors } = await withBooks(async (ctx, pay, store) => {
      await store.transaction(runOf(ctx), () => {
        pay()
        ctx.status = 201
        ctx.body = { id: 'e1' }
      })
      throw new Error('after the COMMIT')
    })
    expect(await post()).toMatchObject({ status: 201, body: '{"id":"e1"}', replayed: null })
    expect(await post()).toMatchObject({ status: 201, body: '{"id":"e1"}', replayed: 'true' })
    expect(effects()).toBe(1)
    expect(errors).toEqual([expect.objectContaining({ message: 'after the COMMIT' })])
  })

  test('that is rolled back leaves nothing of its answer', async () => {
    const { post, effects } = await withBooks(async (ctx, pay, store) => {
      const work = () => {
        pay()
        ctx.status = 201
        ctx.set('X-Paid', 'yes')
        ctx.body = { id: 'e1' }
        throw new Error('no')
      }
      await store.transaction(runOf(ctx), work).catch(() => {})
      ctx.body = 'not paid'
    })
    const reply = await post()
    expect([reply.status, reply.body, reply.headers.get('X-Paid')]).toEqual([200, 'not paid', null])
    expect(effects()).toBe(0)
  })

  test('whose work answers nothing is misuse, and is rolled back', async () => {
    const { post, effects, errors } = await withBooks((ctx, pay, store) => store.transaction(runOf(ctx), pay))
    expect((await post()).status).toBe(500)
    expect(effects()).toBe(0)
    expect(errors).toEqual([expect.objectContaining({ code: 'transaction_unanswered' })])
  })
})

test('an object becomes text once, and earlier middleware sees what it sees with a replay', async () => {
  const bodies: unknown[] = []
  let made = 0
  const before: Koa.Middleware = async (ctx, next) => {
    await next()
    bodies.push(Buffer.isBuffer(ctx.body))
  }
  const { post } = await serve(
    (ctx) => {
      ctx.body = { toJSON: () => ({ made: ++made }) }
    },
    { before: [before] },
  )
  const [first, replay] = [await post(), await post()]
  expect([first.body, replay.body, replay.replayed]).toEqual(['{"made":1}', '{"made":1}', 'true'])
  expect(first.headers.get('Content-Type')).toBe('application/json; charset=utf-8')
  expect(replay.headers.get('Content-Type')).toBe('application/json; charset=utf-8')
  expect(bodies).toEqual([true, true])
})

test.each([undefined, null])('a handler that throws %s is answered, and its outcome is unknown', async (thrown) => {
  const outcomes: unknown[] = []
  const { post } = await serve((ctx) => {
    outcomes.push(ctx.idempotency?.previousOutcome)
    if (outcomes.length === 1) throw thrown
    ctx.body = 'paid'
  })
  expect((await post()).status).toBe(500)
  expect((await post()).body).toBe('paid')
  expect(outcomes).toEqual(['none', 'unknown'])
})

describe('a HEAD that is protected', () => {
  test.each<readonly [what: string, body: () => unknown]>([
    ['a stream', () => Readable.from(['pa', 'id'], { objectMode: false })],
    ['text', () => 'paid'],
    ['bytes', () => Buffer.from('paid')],
    ['JSON', () => ({ paid: true })],
    ['nothing', () => null],
  ])('tells of its body what Koa tells, and never that it is empty: %s', async (_what, body) => {
    const bodies: unknown[] = []
    const handler: Koa.Middleware = (ctx) => {
      ctx.body = body()
      bodies.push(ctx.body)
    }
    const { port, types } = await serve(handler, { methods: ['HEAD'] })
    const head = (headers?: Record<string, string>) =>
      fetch(`http://127.0.0.1:${port}/`, { method: 'HEAD', ...(headers && { headers }) })
    const own = await head()
    for (const replayed of [null, 'true']) {
      const { headers } = await head({ 'Idempotency-Key': 'k' })
      expect(headers.get('Idempotent-Replayed')).toBe(replayed)
      for (const name of ['Content-Length', 'Content-Type']) expect(headers.get(name)).toBe(own.headers.get(name))
    }
    expect(types()).toEqual(['claimed', 'completed', 'replayed'])
    for (const each of bodies) if (each instanceof Readable) expect(each.destroyed).toBe(true)
  })
})

test('JSON whose handler has removed its content type gets no other one', async () => {
  const { post } = await serve((ctx) => {
    ctx.body = { paid: true }
    ctx.remove('Content-Type')
  })
  for (const replayed of [null, 'true']) {
    const { headers, ...rest } = await post()
    expect([rest.replayed, rest.body, headers.get('Content-Type')]).toEqual([replayed, '{"paid":true}', null])
  }
})
