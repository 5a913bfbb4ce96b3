import { type FastifyInstance, type FastifyReply, type FastifyRequest, fastify } from 'fastify'
import { type IdempotencyContext, type IdempotencyEvent, idempotency, singleTenant } from 'once-per-key/fastify'
import { MemoryStore } from 'once-per-key/memory'
import { PostgresStore } from 'once-per-key/postgres'
import { Pool } from 'pg'
import { describe, expect, expectTypeOf, onTestFinished, test } from 'vitest'
import { A_DRIVER } from '../adapters/sqlite/drivers.js'
import { openStore } from '../adapters/sqlite/open-store.js'
import { startPostgres } from '../support/postgres-server.js'

type Handler = (request: FastifyRequest, reply: FastifyReply) => unknown
type Options = Partial<Parameters<typeof idempotency>[1]>

interface Setting extends Options {
  readonly around?: (app: FastifyInstance) => unknown
}

async function serve(handler: Handler, { around, ...options }: Setting = {}) {
  const events: IdempotencyEvent[] = []
  const app = fastify()
  onTestFinished(() => app.close())
  await app.register(idempotency, {
    store: new MemoryStore(),
    scope: singleTenant,
    ...options,
    onEvent: (event) => events.push(event),
  })
  await around?.(app)
  app.post('/payouts', async (request, reply) => handler(request, reply))
  const address = await app.listen({ port: 0, host: '127.0.0.1' })
  async function post(path = '/payouts', key = 'k') {
    const response = await fetch(address + path, { method: 'POST', headers: { 'Idempotency-Key': key } })
    const { status, headers } = response
    return { status, headers, body: await response.text(), replayed: headers.get('idempotent-replayed') }
  }
  return { app, post, events, types: () => events.map(({ type }) => type) }
}

test('the context of the run and the controls are typed', async () => {
  const { app, post } = await serve((request, reply) => {
    expectTypeOf(request.idempotency).toEqualTypeOf<IdempotencyContext | undefined>()
    return reply.code(201).send({ key: request.idempotency?.key })
  })
  expect(await post()).toMatchObject({ status: 201, body: '{"key":"k"}', replayed: null })
  expect(await post()).toMatchObject({ status: 201, body: '{"key":"k"}', replayed: 'true' })
  expect(await app.idempotency.inspect({ scope: singleTenant(), key: 'k' })).toMatchObject({ state: 'completed' })
  await app.idempotency.idle()
})

test('a mistake in its options rejects the registration: it does not end the process', async () => {
  const app = fastify()
  onTestFinished(() => app.close())
  const registered = async () => await app.register(idempotency, {} as never)
  await expect(registered).rejects.toMatchObject({ code: 'options_invalid' })
})

test.each([
  { payload: '', type: null },
  { payload: Buffer.alloc(0), type: null },
  { payload: { not: 'sent' }, type: null },
  { payload: undefined, type: 'text/html' },
])('a 204 with the payload $payload has the content type $type, and so has its replay', async ({ payload, type }) => {
  const { post } = await serve((_request, reply) => reply.code(204).type('text/html').send(payload))
  for (const replayed of [null, 'true']) {
    const reply = await post()
    expect([reply.status, reply.headers.get('content-type'), reply.replayed]).toEqual([204, type, replayed])
  }
})

test('it protects the context that registers it, and those inside', async () => {
  const app = fastify()
  onTestFinished(() => app.close())
  let runs = 0
  const handler = async () => ({ run: ++runs })
  await app.register(async (inner) => {
    await inner.register(idempotency, { store: new MemoryStore(), scope: singleTenant })
    inner.register(async (innermost) => innermost.post('/inside', handler))
  })
  app.post('/outside', handler)
  const send = (url: string) => app.inject({ method: 'POST', url, headers: { 'idempotency-key': 'k' } })
  expect([await send('/inside'), await send('/inside')].map(({ body }) => body)).toEqual(['{"run":1}', '{"run":1}'])
  expect([await send('/outside'), await send('/outside')].map(({ body }) => body)).toEqual(['{"run":2}', '{"run":3}'])
})

test('what later hooks of onSend do to an answer is not stored, and is done to a replay as well', async () => {
  let tries = 0
  const around = (app: FastifyInstance) => {
    app.addHook('onSend', async (_request, reply, payload) => {
      reply.header('X-Try', String(++tries))
      return `${payload} ✓`
    })
  }
  const { post } = await serve(async () => 'paid', { around })
  const [first, replay] = [await post(), await post()]
  expect([first.body, first.headers.get('X-Try'), first.replayed]).toEqual(['paid ✓', '1', null])
  expect([replay.body, replay.headers.get('X-Try'), replay.replayed]).toEqual(['paid ✓', '2', 'true'])
})

test('an error page in place of a replay, for a hook of onSend that has failed, is none, and has its own content type', async () => {
  const app = fastify()
  onTestFinished(() => app.close())
  await app.register(idempotency, { store: new MemoryStore(), scope: singleTenant })
  let failures = 0
  app.addHook('onSend', async (request) => {
    if (request.headers['x-fails'] !== undefined && failures++ === 0) throw new Error('The session store is away')
  })
  app.post('/payouts', (_request, reply) => reply.type('text/html').send('<b>paid</b>'))
  const post = (headers: Record<string, string> = {}) =>
    app.inject({ method: 'POST', url: '/payouts', headers: { 'idempotency-key': 'k', ...headers } })
  await post()
  const { statusCode, headers } = await post({ 'x-fails': 'once' })
  expect([statusCode, headers['content-type']]).toEqual([500, 'application/json; charset=utf-8'])
  expect(headers).not.toHaveProperty('idempotent-replayed')
  expect(await post()).toMatchObject({ body: '<b>paid</b>', headers: { 'idempotent-replayed': 'true' } })
})

test('an async handler that returns nothing after reply.send has answered once', async () => {
  const { post, types } = await serve(async (_request, reply) => {
    reply.send({ paid: true })
  })
  expect((await post()).body).toBe('{"paid":true}')
  expect(await post()).toMatchObject({ body: '{"paid":true}', replayed: 'true' })
  expect(types()).toEqual(['claimed', 'completed', 'replayed'])
})

test('a Response is stored with its status and headers', async () => {
  const { post } = await serve(async () => new Response('paid', { status: 201, headers: { 'X-Receipt': '17' } }))
  for (const replayed of [null, 'true']) {
    const reply = await post()
    expect([reply.status, reply.body, reply.headers.get('X-Receipt'), reply.replayed]).toEqual([
      201,
      'paid',
      '17',
      replayed,
    ])
  }
})

test('a hijacked reply is held as well', async () => {
  const { post } = await serve((_request, reply) => {
    reply.hijack()
    setImmediate(() => reply.raw.writeHead(200, { 'Content-Type': 'text/plain' }).end('by hand'))
  })
  expect((await post()).body).toBe('by hand')
  expect(await post()).toMatchObject({ body: 'by hand', replayed: 'true' })
})

test('a handler that calls the not-found handler is answered by it, and is judged by what it says', async () => {
  const around = (app: FastifyInstance) => {
    app.setNotFoundHandler((_request, reply) => reply.code(404).send({ page: 'not found' }))
  }
  const { post, events } = await serve((_request, reply) => reply.callNotFound(), { around })
  expect(await post()).toMatchObject({ status: 404, body: '{"page":"not found"}', replayed: null })
  expect(events).toMatchObject([{ type: 'claimed' }, { type: 'failed', uncertain: false, because: 'refused' }])
  expect(await post()).toMatchObject({ status: 404, replayed: null })
})

test('two plugins that claim one request are misuse', async () => {
  const app = fastify()
  onTestFinished(() => app.close())
  const hooks: unknown[] = []
  const other = fastify()
  onTestFinished(() => other.close())
  other.addHook = ((name: string, hook: unknown) => {
    if (name === 'preHandler') hooks.push(hook)
    return other
  }) as typeof other.addHook
  await other.register(idempotency, { store: new MemoryStore(), scope: singleTenant })
  await app.register(idempotency, { store: new MemoryStore(), scope: singleTenant })
  app.post('/payouts', { preHandler: hooks as never }, async () => 'paid')
  const reply = await app.inject({ method: 'POST', url: '/payouts', headers: { 'idempotency-key': 'k' } })
  expect([reply.statusCode, reply.json().code]).toEqual([500, 'mounted_twice'])
})

test('a request that its schema refuses claims nothing', async () => {
  const around = (app: FastifyInstance) => {
    const querystring = { type: 'object', required: ['amount'] }
    app.post('/validated', { schema: { querystring } }, async () => 'paid')
  }
  const { post, types } = await serve(async () => 'unused', { around })
  expect((await post('/validated')).status).toBe(400)
  expect(types()).toEqual([])
})

test('misuse goes to the error handler, and nothing is stored', async () => {
  const seen: unknown[] = []
  const around = (app: FastifyInstance) => {
    app.setErrorHandler((error, _request, reply) => {
      seen.push(error)
      return reply.code(500).send()
    })
  }
  const { post, types } = await serve(async () => 'paid', { around, scope: () => '' })
  expect((await post()).status).toBe(500)
  expect(seen).toEqual([expect.objectContaining({ code: 'scope_invalid' })])
  expect(types()).toEqual([])
})

test('on Postgres, its work may return the reply, and a retry of the transaction sends one answer', async () => {
  const server = await startPostgres()
  const pool = new Pool({ connectionString: server.url() })
  onTestFinished(async () => {
    await pool.end()
    await server.close()
  })
  const store = new PostgresStore({ pool, transactions: pool })
  await store.migrate()
  await pool.query('CREATE TABLE effects (id text)')
  let tries = 0
  const { post } = await serve(
    async (request, reply) => {
      const work = async (tx: { query(text: string): Promise<unknown> }) => {
        await tx.query("INSERT INTO effects VALUES ('e1')")
        return reply.code(201).header('X-Try', String(++tries)).send({ id: 'e1' })
      }
      try {
        await store.transaction(request.idempotency, async (tx) => {
          await work(tx)
          throw new Error('no')
        })
      } catch {
        await store.transaction(request.idempotency, work)
      }
      return reply
    },
    { store },
  )
  for (const replayed of [null, 'true']) {
    const reply = await post()
    expect([reply.status, reply.body, reply.headers.get('X-Try'), reply.replayed]).toEqual([
      201,
      '{"id":"e1"}',
      '2',
      replayed,
    ])
  }
  expect((await pool.query('SELECT * FROM effects')).rowCount).toBe(1)
})

describe('in a transaction of the handler’s own', () => {
  type Store = ReturnType<typeof openStore>['store']

  async function withBooks(
    handler: (run: IdempotencyContext, reply: FastifyReply, pay: () => void, store: Store) => unknown,
  ) {
    const { database, store, query } = openStore(A_DRIVER)
    database.exec('PRAGMA journal_mode = WAL; CREATE TABLE effects (id TEXT)')
    await store.migrate()
    const pay = () => database.exec("INSERT INTO effects VALUES ('e1')")
    const served = await serve(
      (request, reply) => handler(request.idempotency as IdempotencyContext, reply, pay, store),
      { store },
    )
    return { ...served, effects: () => query('SELECT * FROM effects').length }
  }

  test('what its work sends is the answer', async () => {
    const { post, effects } = await withBooks(async (run, reply, pay, store) => {
      await store.transaction(run, () => {
        pay()
        reply.code(201).send({ id: 'e1' })
      })
      return reply
    })
    expect(await post()).toMatchObject({ status: 201, body: '{"id":"e1"}', replayed: null })
    expect(await post()).toMatchObject({ status: 201, body: '{"id":"e1"}', replayed: 'true' })
    expect(effects()).toBe(1)
  })

  test('that is rolled back leaves nothing of its answer', async () => {
    const { post, effects } = await withBooks(async (run, reply, pay, store) => {
      const work = () => {
        pay()
        reply.code(201).header('X-Paid', 'yes').send({ id: 'e1' })
        throw new Error('no')
      }
      await store.transaction(run, work).catch(() => {})
      return reply.send('not paid')
    })
    const reply = await post()
    expect([reply.status, reply.body, reply.headers.get('X-Paid')]).toEqual([200, 'not paid', null])
    expect(effects()).toBe(0)
  })

  test('whose work answers nothing is misuse, and is rolled back', async () => {
    const { post, effects } = await withBooks((run, _reply, pay, store) => store.transaction(run, pay))
    expect(await post()).toMatchObject({ status: 500, body: expect.stringContaining('transaction_unanswered') })
    expect(effects()).toBe(0)
  })
})
