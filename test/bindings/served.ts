import type { AddressInfo } from 'node:net'
import type { FastifyInstance, fastify } from 'fastify'
import { type Env, Hono } from 'hono'
import Koa, { type Context } from 'koa'
import type { IdempotencyEvent, IdempotencyOptions } from 'once-per-key'
import * as onFastify from 'once-per-key/fastify'
import * as onHono from 'once-per-key/hono'
import * as onKoa from 'once-per-key/koa'
import { MemoryStore } from 'once-per-key/memory'
import { onTestFinished } from 'vitest'
import { listen } from '../support/bindings.js'
import { fetchListener } from '../support/fetch-listener.js'

/** An application of one framework, in its own words, for one test. */
export interface Served {
  readonly port: number
  readonly events: IdempotencyEvent[]
  idle(): Promise<void>
}

export interface Settings {
  /** `false`: the same application without the library. */
  readonly isProtected?: boolean
  // biome-ignore lint/suspicious/noExplicitAny: options look at requests of any framework
  readonly options?: Partial<IdempotencyOptions<any>>
}

function optionsOf({ options }: Settings) {
  const events: IdempotencyEvent[] = []
  const all = { scope: () => 'acme', store: new MemoryStore(), ...options }
  return { events, options: { ...all, onEvent: (event: IdempotencyEvent) => void events.push(event) } }
}

export { FASTIFYS } from '../versions/fastify.js'

export interface FastifySettings extends Settings {
  /** Runs before the plugin is registered. */
  readonly before?: (app: FastifyInstance) => unknown
  /** Runs after it: routes, and plugins between. */
  readonly routes: (app: FastifyInstance) => unknown
}

export async function serveFastify(create: typeof fastify, settings: FastifySettings): Promise<Served> {
  const { before, routes, isProtected = true } = settings
  const { events, options } = optionsOf(settings)
  const app = create({ forceCloseConnections: true })
  onTestFinished(() => app.close())
  await before?.(app)
  if (isProtected) await app.register(onFastify.idempotency, options)
  await routes(app)
  await app.listen({ port: 0, host: '127.0.0.1' })
  const { port } = app.server.address() as AddressInfo
  return { port, events, idle: async () => app.idempotency?.idle() }
}

type KoaStep = (ctx: Context, next: () => Promise<void>) => unknown

export interface KoaSettings extends Settings {
  readonly before?: readonly KoaStep[]
  readonly handler: KoaStep
}

export async function serveKoa(settings: KoaSettings): Promise<Served> {
  const { before = [], handler, isProtected = true } = settings
  const { events, options } = optionsOf(settings)
  const once = onKoa.idempotency(options)
  const app = new Koa()
  app.silent = true
  for (const step of before) app.use(step as Koa.Middleware)
  if (isProtected) app.use(once)
  app.use(handler as Koa.Middleware)
  const running = await listen(app.callback())
  onTestFinished(running.close)
  return { port: running.port, events, idle: () => once.idle() }
}

export interface HonoSettings extends Settings {
  readonly before?: (app: Hono<Env>) => unknown
  readonly routes: (app: Hono<Env>) => unknown
}

export async function serveHono(settings: HonoSettings): Promise<Served> {
  const { before, routes, isProtected = true } = settings
  const { events, options } = optionsOf(settings)
  const once = onHono.idempotency(options)
  const app = new Hono()
  before?.(app)
  if (isProtected) app.use(once)
  routes(app)
  const running = await listen(fetchListener((request) => app.fetch(request)))
  onTestFinished(running.close)
  return { port: running.port, events, idle: () => once.idle() }
}
