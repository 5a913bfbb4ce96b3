// Hono, Koa and Fastify: their option functions and their handlers' contexts have types without a word of the application.
import { metrics, trace } from '@opentelemetry/api'
import { fastify } from 'fastify'
import { Hono } from 'hono'
import Koa from 'koa'
import type { IdempotencyContext, Store } from 'once-per-key/core'
import { idempotency as forFastify, type IdempotencyControls } from 'once-per-key/fastify'
import { idempotency as forHono } from 'once-per-key/hono'
import { idempotency as forKoa } from 'once-per-key/koa'
import { type InstrumentOptions, instrument } from 'once-per-key/opentelemetry'

declare const store: Store

type Equal<A, B> = (<T>() => T extends A ? 1 : 2) extends <T>() => T extends B ? 1 : 2 ? true : false
const isTrue = <_ extends true>() => {}

const hono = new Hono()
const ofHono = forHono({ store, scope: (c) => c.req.header('x-merchant') })
hono.post('/payouts', ofHono, (c) => {
  const context = c.get('idempotency')
  isTrue<Equal<typeof context, IdempotencyContext | undefined>>()
  // @ts-expect-error: a request without a key has none
  c.var.idempotency.attempt.toFixed()
  return c.json({ attempt: c.var.idempotency?.attempt })
})
// @ts-expect-error: whose key it is must be said
forHono({ store })

const koa = new Koa()
const ofKoa = forKoa({ store, scope: (ctx: Koa.Context) => ctx.get('x-merchant') })
koa.use(ofKoa)
koa.use((ctx) => {
  isTrue<Equal<typeof ctx.idempotency, IdempotencyContext | undefined>>()
  // @ts-expect-error: a request without a key has none
  ctx.idempotency.attempt.toFixed()
  ctx.body = { attempt: ctx.idempotency?.attempt }
})
// @ts-expect-error: whose key it is must be said
forKoa({ store })

const server = fastify()
await server.register(forFastify, { store, scope: (request) => request.headers.host })
server.post('/payouts', async (request) => {
  isTrue<Equal<typeof request.idempotency, IdempotencyContext | undefined>>()
  // @ts-expect-error: a request without a key has none
  request.idempotency.attempt.toFixed()
  return { attempt: request.idempotency?.attempt }
})
const controls: IdempotencyControls = server.idempotency
// @ts-expect-error: whose key it is must be said
await server.register(forFastify, { store })

const telemetry: InstrumentOptions = { meterProvider: metrics, tracerProvider: trace }
instrument(telemetry)
// @ts-expect-error: no provider
instrument({ meterProvider: 1 })

export async function shutDown(): Promise<void> {
  await Promise.all([ofHono.idle(), ofKoa.idle(), controls.idle()])
}
