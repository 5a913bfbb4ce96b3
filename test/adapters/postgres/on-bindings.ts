import http, { type IncomingMessage, type ServerResponse } from 'node:http'
import type { AddressInfo } from 'node:net'
import express from 'express'
import fastify from 'fastify'
import { Hono } from 'hono'
import Koa from 'koa'
import { type IdempotencyContext, idempotency, singleTenant } from 'once-per-key'
import { idempotency as onFastify } from 'once-per-key/fastify'
import { idempotency as onFetch } from 'once-per-key/fetch'
import { idempotency as onHono } from 'once-per-key/hono'
import { idempotency as onKoa } from 'once-per-key/koa'
import type { PostgresStore } from 'once-per-key/postgres'
import { runner } from 'once-per-key/run'
import { webhookReceiver } from 'once-per-key/webhooks'
import { onTestFinished } from 'vitest'
import { merchantUpdated } from '../../support/deliveries.js'

type Context = Pick<IdempotencyContext, 'attempt' | 'previousOutcome' | 'signal' | 'step'>
/** Answers the request in the framework's way; what it returns is returned, from work and handler alike. */
type AnswerWith = (status: number, id: string) => unknown
export type Handler = (context: Context, answer: AnswerWith) => Promise<unknown>

/** `id`: of the answer; `null`: it has none, or is a problem. */
export interface Told {
  readonly status: number
  readonly id: string | null
}

export interface Served {
  send(): Promise<Told>
  idle(): Promise<void>
}

type Settings = {
  readonly leaseMs: number
  readonly maxRunMs: number
  readonly storeTimeoutMs: number
  readonly effects?: 'in-transaction'
  readonly keepFailure?: () => boolean
}
type Serve = (store: PostgresStore, settings: Settings, handler: Handler) => Promise<Served>

/** Failures as the handler answers them, and those that the framework makes of what it throws. */
export const BINDINGS: readonly (readonly [name: string, serve: Serve])[] = [
  [
    'Express',
    async (store, settings, handler) => {
      const once = idempotency({ store, scope: singleTenant, ...settings, onEvent: () => {} })
      const app = express()
      app.post('/', once, (req, res) =>
        handler(req.idempotency as IdempotencyContext, (status, id) => void res.status(status).json({ id })),
      )
      app.use((_error: unknown, _req: express.Request, res: express.Response, _next: express.NextFunction) => {
        res.status(500).json({ id: null })
      })
      return overHttp(http.createServer(app), once)
    },
  ],
  [
    'node:http',
    async (store, settings, handler) => {
      const once = idempotency<IncomingMessage>({ store, scope: singleTenant, ...settings, onEvent: () => {} })
      const answer = (res: ServerResponse, status: number, id: string | null) => {
        res.statusCode = status
        res.end(JSON.stringify({ id }))
      }
      const server = http.createServer((req, res) => {
        once(req, res, () => {
          const { idempotency: context } = req as { idempotency?: IdempotencyContext }
          handler(context as IdempotencyContext, (status, id) => answer(res, status, id)).catch(() =>
            answer(res, 500, null),
          )
        })
      })
      return overHttp(server, once)
    },
  ],
  [
    'Koa',
    async (store, settings, handler) => {
      const once = onKoa({ store, scope: singleTenant, ...settings, onEvent: () => {} })
      const app = new Koa().on('error', () => {}).use(once)
      app.use(async (ctx) => {
        await handler(ctx.idempotency as IdempotencyContext, (status, id) => {
          ctx.status = status
          ctx.body = { id }
        })
      })
      return overHttp(http.createServer(app.callback()), once)
    },
  ],
  [
    'Fastify',
    async (store, settings, handler) => {
      const app = fastify()
      await app.register(onFastify, { store, scope: singleTenant, ...settings, onEvent: () => {} })
      app.post('/', async (request, reply) => {
        await handler(request.idempotency as IdempotencyContext, (status, id) => void reply.code(status).send({ id }))
        return reply
      })
      await app.ready()
      app.server.listen(0, '127.0.0.1')
      return overHttp(app.server, { idle: () => app.idempotency.idle() })
    },
  ],
  [
    'Fetch',
    async (store, settings, handler) => {
      const once = onFetch({ store, scope: singleTenant, ...settings, onEvent: () => {} })
      const respond = async (request: Request) =>
        once.handle(
          request,
          (_request, context) =>
            handler(context as IdempotencyContext, (status, id) =>
              Response.json({ id }, { status }),
            ) as Promise<Response>,
        )
      return inProcess((request) => respond(request).catch(() => new Response(null, { status: 500 })), once)
    },
  ],
  [
    'Hono',
    async (store, settings, handler) => {
      const once = onHono({ store, scope: singleTenant, ...settings, onEvent: () => {} })
      const app = new Hono()
      app.post(
        '/',
        once,
        (c) =>
          handler(c.get('idempotency') as IdempotencyContext, (status, id) =>
            c.json({ id }, status as 201),
          ) as Promise<Response>,
      )
      app.onError((_error, c) => c.json({ id: null }, 500))
      return inProcess(async (request) => app.fetch(request), once)
    },
  ],
  [
    'a function',
    async (store, settings, handler) => {
      const once = runner({ store, name: 'payouts', ...settings, onEvent: () => {} })
      const operation = { scope: 'acme', key: 'k', input: {} }
      return {
        idle: () => once.idle(),
        send: () =>
          once(operation, (context) => handler(context, valueOrThrow) as Promise<string>).then(
            (id) => ({ status: 201, id }),
            () => ({ status: 500, id: null }),
          ),
      }
    },
  ],
  [
    'a webhook',
    async (store, settings, handler) => {
      // Its answer has no body: the last id that was given is told.
      let last: string | null = null
      const receiver = webhookReceiver({
        ...{ store, source: 'payments', verify: false, onEvent: () => {}, ...settings },
        on: {
          merchant_updated: async (_event: unknown, context: Context) => {
            last = (await handler(context, valueOrThrow)) as string
          },
        },
      })
      const server = http.createServer((req, res) => receiver(req, res)).listen(0, '127.0.0.1')
      const { send, idle } = await overHttp(server, receiver, {
        path: '/api/service/webhook-event/merchant_updated',
        body: JSON.stringify(merchantUpdated()),
      })
      return {
        idle,
        async send() {
          const { status } = await send()
          return status === 200 ? { status: 201, id: last } : { status, id: null }
        },
      }
    },
  ],
]

function valueOrThrow(status: number, id: string): string {
  if (status >= 400) throw new Error(`It failed with ${status}.`)
  return id
}

interface Idle {
  idle(): Promise<void>
}

async function overHttp(server: http.Server, { idle }: Idle, { path = '/', body = '' } = {}): Promise<Served> {
  if (!server.listening) await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  onTestFinished(() => {
    server.closeAllConnections()
    server.close()
  })
  const url = `http://127.0.0.1:${(server.address() as AddressInfo).port}${path}`
  return {
    idle,
    send: async () => {
      const headers = { 'Idempotency-Key': 'k', ...(body !== '' && { 'Content-Type': 'application/json' }) }
      return toldBy(await fetch(url, { method: 'POST', headers, ...(body !== '' && { body }) }))
    },
  }
}

function inProcess(respond: (request: Request) => Promise<Response>, { idle }: Idle): Served {
  return {
    idle,
    send: async () =>
      toldBy(await respond(new Request('http://test/', { method: 'POST', headers: { 'Idempotency-Key': 'k' } }))),
  }
}

async function toldBy(response: Response): Promise<Told> {
  const text = await response.text()
  const id = text.startsWith('{') ? (JSON.parse(text).id ?? null) : null
  return { status: response.status, id }
}
