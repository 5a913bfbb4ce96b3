import express, { type Response as ExpressResponse, type Request, type RequestHandler } from 'express'
import Fastify from 'fastify'
import { Hono } from 'hono'
import { Redis } from 'ioredis'
import Koa from 'koa'
import koaParser from 'koa-bodyparser'
import { idempotency, type Store, withoutBody } from 'once-per-key'
import { idempotency as fastifyIdempotency } from 'once-per-key/fastify'
import { idempotency as fetchIdempotency } from 'once-per-key/fetch'
import { idempotency as honoIdempotency } from 'once-per-key/hono'
import { idempotency as koaIdempotency } from 'once-per-key/koa'
import { MemoryStore } from 'once-per-key/memory'
import { PostgresStore } from 'once-per-key/postgres'
import { RedisStore } from 'once-per-key/redis'
import pg from 'pg'
import { floor } from './floor.js'
import { countTrips } from './trips.js'
import { BODY, withoutWire } from './without-wire.js'

/** Handles a request with this key, or without one, and calls `done` when its client has the whole answer. */
export type Send = (key: string | null, done: () => void) => void

/** What else is counted, beside what the process itself makes. */
export interface Service {
  readonly send: Send
  /** Trips to the database. */
  trips?(): number
}

const REFERENCE = 'r'.repeat(60)
const terms = { scope: () => 'acme' }
let runs = 0

function payout() {
  const id = `payout_${String(++runs).padStart(10, '0')}`
  return { id, amountMinor: 129_900, currency: 'EUR', status: 'pending', reference: REFERENCE }
}

function pay(_req: Request, res: ExpressResponse): void {
  const created = payout()
  res.status(201).location(`/payouts/${created.id}`).json(created)
}

/** Keeps all that is counted: growing shelves of records that expire would be counted too. */
function memory(): MemoryStore {
  return new MemoryStore({ maxBytes: 2 ** 33, maxEntries: 1e7 })
}

/** Accepts every claim: what is left is the cost of all but the store. */
function forgetful(): Store {
  const begun = { acquired: true, attempt: 1, previousOutcome: 'none' } as const
  const ok = { ok: true } as const
  return { begin: () => begun, renew: () => ok, complete: () => ok, release: () => ok }
}

/** The services by their names. */
export const SERVICES: Readonly<Record<string, () => Promise<Service>>> = {
  express: () => onExpress(pay),
  'express, with 512 words more': () => onExpress(allocate, pay),
  'express, nothing kept': () => onExpress(idempotency({ ...terms, store: forgetful() }), pay),
  'express, nothing kept, no fingerprint': () =>
    onExpress(idempotency({ ...terms, store: forgetful(), fingerprint: withoutBody(() => null) }), pay),
  'express, memory': () => onExpress(idempotency({ ...terms, store: memory() }), pay),
  'express, redis by hand': async () => onExpress(floor(redis()), pay),
  'express, redis': async () => onExpress(idempotency({ ...terms, store: new RedisStore({ client: redis() }) }), pay),
  'express, postgres': onPostgres,
  fastify: () => onFastify(),
  'fastify, memory': () => onFastify({ ...terms, store: memory() }),
  koa: async () => onKoa(),
  'koa, memory': async () => onKoa(koaIdempotency({ ...terms, store: memory() })),
  fetch: async () => onFetch(async (request) => answered(await request.json())),
  'fetch, memory': async () => {
    const once = fetchIdempotency({ ...terms, store: memory() })
    return onFetch(once(async (request) => answered(await request.json())))
  },
  hono: async () => onHono(),
  'hono, memory': async () => onHono(honoIdempotency({ ...terms, store: memory() })),
}

async function onExpress(...handlers: RequestHandler[]): Promise<Service> {
  const app = express().disable('x-powered-by')
  app.post('/payouts', express.json(), ...handlers)
  return { send: withoutWire(app) }
}

/** What the measure must see. */
let kept: unknown[] = []
function allocate(_req: unknown, _res: unknown, next: () => void): void {
  kept = new Array(512).fill(0)
  if (kept.length > 0) next()
}

function redis(): Redis {
  return new Redis(Number(process.env.REDIS_PORT), '127.0.0.1')
}

async function onPostgres(): Promise<Service> {
  const pool = new pg.Pool({ connectionString: process.env.POSTGRES_URL, max: 1 })
  const trips = countTrips(pool)
  const store = new PostgresStore({ pool })
  await store.migrate()
  const service = await onExpress(idempotency({ ...terms, store }), pay)
  return { ...service, trips }
}

async function onFastify(options?: Parameters<typeof fastifyIdempotency>[1]): Promise<Service> {
  const app = Fastify()
  if (options !== undefined) await app.register(fastifyIdempotency, options)
  app.post('/payouts', (_request, reply) => {
    const created = payout()
    reply.code(201).header('Location', `/payouts/${created.id}`).send(created)
  })
  await app.ready()
  return { send: withoutWire((req, res) => app.routing(req, res)) }
}

function onKoa(once?: ReturnType<typeof koaIdempotency>): Service {
  const app = new Koa().use(koaParser())
  if (once !== undefined) app.use(once)
  app.use((ctx) => {
    const created = payout()
    ctx.status = 201
    ctx.set('Location', `/payouts/${created.id}`)
    ctx.body = created
  })
  return { send: withoutWire(app.callback()) }
}

function answered(_body: unknown): Response {
  const created = payout()
  return Response.json(created, { status: 201, headers: { Location: `/payouts/${created.id}` } })
}

function onFetch(handle: (request: globalThis.Request) => Response | Promise<Response>): Service {
  return { send: (key, done) => void handled(handle(requestWith(key))).then(done) }
}

async function handled(given: Response | Promise<Response>): Promise<void> {
  const response = await given
  if (response.status !== 201) throw new Error(`Answered ${response.status}: ${await response.text()}`)
  await response.arrayBuffer()
}

function requestWith(key: string | null): globalThis.Request {
  const headers = { 'Content-Type': 'application/json', ...(key !== null && { 'Idempotency-Key': key }) }
  return new Request('http://127.0.0.1/payouts', { method: 'POST', headers, body: BODY })
}

function onHono(once?: ReturnType<typeof honoIdempotency>): Service {
  const app = new Hono()
  if (once !== undefined) app.use(once)
  app.post('/payouts', async (c) => answered(await c.req.json()))
  return onFetch((request) => app.fetch(request))
}
