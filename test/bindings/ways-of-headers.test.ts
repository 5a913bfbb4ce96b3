import { Buffer } from 'node:buffer'
import type { ServerResponse } from 'node:http'
import { Readable } from 'node:stream'
import type { FastifyInstance, FastifyReply } from 'fastify'
import type { Context as HonoContext } from 'hono'
import { stream as streamed } from 'hono/streaming'
import type { Context } from 'koa'
import { MemoryStore } from 'once-per-key/memory'
import { expect, test } from 'vitest'
import { BINDINGS, type Step } from '../support/bindings.js'
import { type RawReply, request } from '../support/raw-client.js'
import { serve as serveNode } from '../support/serve.js'
import { thoroughly } from '../support/thoroughness.js'
import { FASTIFYS, serveFastify, serveHono, serveKoa } from './served.js'

// Whatever a first answer carries of what is kept, its replay carries, however it came there: set in front of the library or behind
// it, by the framework or by the handler, with a body of any kind. What tells how to read the body is carried by a replay from
// anywhere, also where nobody in front sets it.

type Serve = (store: MemoryStore) => Promise<{ readonly port: number }>
type Way = readonly [way: string, serve: Serve]

/** Bodies that frameworks give a content type of their own, each in its way. */
const SOME_BODIES: Readonly<Record<string, () => unknown>> = {
  JSON: () => ({ paid: true }),
  'a stream': () => Readable.from(['pa', 'id'], { objectMode: false }),
  'no body': () => undefined,
}
const BODIES = thoroughly(SOME_BODIES, {
  ...SOME_BODIES,
  text: () => 'paid',
  markup: () => '<p>paid</p>',
  bytes: () => Buffer.from('paid'),
})

function ways<Side>(
  before: Readonly<Record<string, (side: Side) => unknown>>,
  within: Readonly<Record<string, (side: Side) => unknown>>,
  serve: (
    store: MemoryStore,
    before: (side: Side) => unknown,
    handler: (side: Side, body: unknown) => unknown,
  ) => ReturnType<Serve>,
  answer: (side: Side, body: unknown) => unknown,
): Way[] {
  const nothing = (_side: Side): void => {}
  return Object.entries({ nothing, ...before }).flatMap(([front, inFront]) =>
    Object.entries({ nothing, ...within }).flatMap(([inside, setWithin]) =>
      Object.entries(BODIES).map(
        ([what, body]): Way => [
          `in front ${front}; in the handler ${inside}; ${what}`,
          (store) =>
            serve(store, inFront, (side) => {
              setWithin(side)
              return answer(side, body())
            }),
        ],
      ),
    ),
  )
}

const onNode = (binding: (typeof BINDINGS)[number]): Way[] =>
  ways<ServerResponse>(
    {
      'a content type': (res) => res.setHeader('Content-Type', 'text/csv'),
      // Express throws for one without a slash.
      ...(!binding.isExpress && { 'one without a slash': (res) => res.setHeader('Content-Type', 'csv') }),
      'several headers': (res) => res.setHeader('Vary', 'Origin').setHeader('X-In-Front', ['1', '2']),
      'a coding': (res) => res.setHeader('Content-Encoding', 'identity'),
    },
    {
      'a content type': (res) => res.setHeader('Content-Type', 'text/csv'),
      'another one': (res) => res.setHeader('content-type', 'text/tab-separated-values; charset=utf-8'),
      'none any more': (res) => res.removeHeader('Content-Type'),
      'a head': (res) => res.writeHead(201, { 'Content-Type': 'text/csv', 'X-Receipt': '17' }),
      'a head, flat': (res) => res.writeHead(201, ['X-Receipt', '17', 'X-Receipt', '18']),
      'one more of the same': (res) => res.appendHeader('Vary', 'Accept').appendHeader('X-In-Front', '3'),
    },
    (store, before, handler) => {
      const first: Step = (_req, res, next) => {
        before(res)
        next()
      }
      return serveNode(binding, (_req, res) => handler(res, undefined), { before: [first], options: { store } })
    },
    (res, body) => {
      const own = res as ServerResponse & { send?(body: unknown): unknown; json?(body: unknown): unknown }
      if (body instanceof Readable) return body.pipe(res)
      const isText = typeof body === 'string' || Buffer.isBuffer(body)
      if (own.send !== undefined && !res.headersSent && body !== undefined)
        return isText ? own.send(body) : own.json?.(body)
      return res.end(isText || body === undefined ? body : JSON.stringify(body))
    },
  )

const onKoa: Way[] = ways<Context>(
  {
    'a content type': (ctx) => {
      ctx.type = 'text/csv'
    },
    'one without a slash': (ctx) => ctx.set('Content-Type', 'csv'),
    'several headers': (ctx) => {
      ctx.vary('Origin')
      ctx.append('X-In-Front', ['1', '2'])
    },
    'a coding': (ctx) => ctx.set('Content-Encoding', 'identity'),
  },
  {
    'a content type': (ctx) => {
      ctx.type = 'text/csv'
    },
    'another one': (ctx) => ctx.res.setHeader('content-type', 'text/tab-separated-values; charset=utf-8'),
    'none any more': (ctx) => ctx.remove('Content-Type'),
    'one more of the same': (ctx) => {
      ctx.vary('Accept')
      ctx.append('X-In-Front', '3')
    },
    'a status': (ctx) => {
      ctx.status = 201
    },
  },
  (store, before, handler) =>
    serveKoa({
      options: { store },
      before: [
        (ctx, next) => {
          before(ctx)
          return next()
        },
      ],
      handler: (ctx) => void handler(ctx, undefined),
    }),
  (ctx, body) => {
    if (body === undefined) ctx.status = 202
    else ctx.body = body
  },
)

const onFastify = (create: (typeof FASTIFYS)[number]['create'], hook: 'onRequest' | 'preHandler'): Way[] =>
  ways<FastifyReply>(
    {
      'a content type': (reply) => reply.type('text/csv'),
      'one without a slash': (reply) => reply.header('Content-Type', 'csv'),
      'one on Node’s response': ({ raw }) => raw.setHeader('Content-Type', 'text/csv'),
      'several headers': (reply) => reply.header('Vary', 'Origin').header('X-In-Front', ['1', '2']),
      'a coding': (reply) => reply.header('Content-Encoding', 'identity'),
    },
    {
      'a content type': (reply) => reply.type('text/csv'),
      'one without a slash': (reply) => reply.type('csv'),
      'another one': (reply) => reply.header('content-type', 'text/tab-separated-values; charset=utf-8'),
      'none any more': (reply) => reply.removeHeader('Content-Type'),
      'headers of Node’s response': ({ raw }) => raw.setHeader('X-Receipt', '17'),
      'a status and headers': (reply) => reply.code(201).headers({ Vary: 'Origin, Accept', 'X-In-Front': '3' }),
    },
    (store, before, handler) =>
      serveFastify(create, {
        options: { store },
        before: (app: FastifyInstance) =>
          app.addHook(hook, async (_request: unknown, reply: FastifyReply) => void before(reply)),
        routes: (app) => app.post('/', async (_request, reply) => handler(reply, undefined)),
      }),
    // Text stands for JSON where the content type says so, as in Fastify.
    (reply, body) => {
      const isJson = typeof body === 'object' && !Buffer.isBuffer(body) && !(body instanceof Readable)
      return reply.send(isJson && reply.hasHeader('Content-Type') ? JSON.stringify(body) : body)
    },
  )

const onHono: Way[] = ways<HonoContext>(
  {
    'a content type': (c) => c.header('Content-Type', 'text/csv'),
    'several headers': (c) => {
      c.header('Vary', 'Origin')
      c.header('X-In-Front', '1')
      c.header('X-In-Front', '2', { append: true })
    },
    'a coding': (c) => c.header('Content-Encoding', 'identity'),
  },
  {
    'a content type': (c) => c.header('Content-Type', 'text/csv'),
    'none any more': (c) => c.header('Content-Type', undefined),
    'one more of the same': (c) => {
      c.header('Vary', 'Accept', { append: true })
      c.header('X-In-Front', '3', { append: true })
    },
  },
  (store, before, handler) =>
    serveHono({
      options: { store },
      before: (app) =>
        app.use(async (c, next) => {
          before(c)
          await next()
        }),
      routes: (app) => app.post('/', (c) => handler(c, undefined) as Response),
    }),
  (c, body) => {
    if (body === undefined) return c.body(null)
    if (body === '<p>paid</p>') return c.html(body as string)
    if (typeof body === 'string') return c.text(body)
    if (Buffer.isBuffer(body)) return c.body(new Uint8Array(body))
    if (body instanceof Readable) {
      return streamed(c, async (to) => {
        for await (const piece of body) await to.write(piece)
      })
    }
    return c.json(body)
  },
)

const ALL: readonly (readonly [framework: string, way: string, serve: Serve])[] = [
  ...BINDINGS.filter(({ name }) => name === 'Express 5' || name === 'node:http').flatMap((binding) =>
    onNode(binding).map((way) => [binding.name, ...way] as const),
  ),
  ...onKoa.map((way) => ['Koa', ...way] as const),
  ...FASTIFYS.flatMap(({ name, create }) =>
    (['onRequest', 'preHandler'] as const).flatMap((hook) =>
      onFastify(create, hook).map((way) => [`${name}, ${hook}`, ...way] as const),
    ),
  ),
  ...onHono.map((way) => ['Hono', ...way] as const),
]

const NOT_KEPT = new Set(['date', 'connection', 'keep-alive', 'transfer-encoding', 'content-length', 'x-powered-by'])

function carriedBy(reply: RawReply, names?: ReadonlySet<string>): string[] {
  const lines = reply.headers.map(([name, value]) => [name.toLowerCase(), value] as const)
  const kept = lines.filter(([name]) => !NOT_KEPT.has(name) && name !== 'idempotent-replayed')
  const asked = names === undefined ? kept : kept.filter(([name]) => names.has(name))
  return asked.map(([name, value]) => `${name}: ${value}`).sort()
}

const OF_BODY = new Set(['content-type', 'content-encoding'])

test.each(ALL)('%s, %s', async (_framework, _way, serve) => {
  const store = new MemoryStore()
  const { port } = await serve(store)
  const [first, replay] = [await request(port, { key: 'k' }), await request(port, { key: 'k' })]
  expect(replay.header('Idempotent-Replayed')).toBe('true')
  expect(carriedBy(replay)).toEqual(carriedBy(first))
  expect([replay.status, replay.body]).toEqual([first.status, first.body])

  const [plain] = BINDINGS.filter(({ name }) => name === 'node:http')
  const elsewhere = await serveNode(plain as (typeof BINDINGS)[number], (_req, res) => res.end(), {
    options: { store },
  })
  const there = await request(elsewhere.port, { key: 'k' })
  expect(there.header('Idempotent-Replayed')).toBe('true')
  expect(carriedBy(there, OF_BODY)).toEqual(carriedBy(first, OF_BODY))
})
