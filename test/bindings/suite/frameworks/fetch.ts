import { serve } from '@hono/node-server'
import { idempotency } from 'once-per-key/fetch'
import { type BindingCall, bindOptions } from 'once-per-key/testing'
import { listen, type Running } from '../../../support/bindings.js'
import { type FetchHandler, fetchListener } from '../../../support/fetch-listener.js'
import type { App, Framework, Reply } from '../framework.js'

const TRAITS = { joinsHeaderLines: true, hasNoErrorHandler: true, readsBodies: true } as const

/** Handlers of Fetch behind two servers: one that does no more than the standard says, and one that people use. */
export const ON_FETCH: readonly Framework[] = [
  { name: 'fetch', start: (app) => start(app, (handler) => listen(fetchListener(handler))), ...TRAITS },
  { name: 'fetch, by @hono/node-server', start: (app) => start(app, served), ...TRAITS },
]

async function start(app: App, serving: (handler: FetchHandler) => Promise<Running>) {
  const once = idempotency(bindOptions(app, (request: Request, name) => request.headers.get(name)))
  const running = await serving(async (request) => {
    if (!app.isProtected) return responseOf(await app.handler(callOf(request, undefined)))
    return once.handle(request, async (same, idempotency) => responseOf(await app.handler(callOf(same, idempotency))))
  })
  return { ...running, once }
}

async function served(handler: FetchHandler): Promise<Running> {
  let port = 0
  const server = await new Promise<ReturnType<typeof serve>>((resolve) => {
    const opening = serve({ fetch: handler, port: 0, hostname: '127.0.0.1', overrideGlobalObjects: false }, (info) => {
      port = info.port
      resolve(opening)
    })
  })
  return {
    port,
    server: server as Running['server'],
    close() {
      ;(server as Running['server']).closeAllConnections()
      return new Promise((resolve) => server.close(() => resolve()))
    },
  }
}

export function callOf(request: Request, idempotency: BindingCall['idempotency']): BindingCall {
  return {
    idempotency,
    json: () => request.json(),
    bytes: async () => new Uint8Array(await request.arrayBuffer()),
  }
}

export function responseOf({ status, headers = [], json, text, bytes, stream, redirect }: Reply): Response {
  const lines = headers.map(([name, value]): [string, string] => [name, value])
  if (redirect !== undefined)
    return withLines(Response.redirect(new URL(redirect, 'http://test'), (status ?? 302) as 303), lines)
  const init = { status: status ?? 200, headers: lines }
  if (json !== undefined) return Response.json(json, init)
  if (stream !== undefined) return new Response(ReadableStream.from(stream), init)
  return new Response(bytes === undefined ? (text ?? null) : new Uint8Array(bytes), init)
}

/** Those of a redirection cannot be changed. */
function withLines(response: Response, lines: readonly [string, string][]): Response {
  const copy = new Response(response.body, response)
  for (const [name, value] of lines) copy.headers.append(name, value)
  return copy
}
