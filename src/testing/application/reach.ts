import { createServer, type IncomingMessage, type RequestListener, Server, type ServerResponse } from 'node:http'
import type { AddressInfo } from 'node:net'
import type { OnceAnswer, OnceApp, OnceRequest } from './once-app.js'

type Send = (request: OnceRequest) => Promise<OnceAnswer>

/** How requests reach an application, and what ends that. */
export async function reach(app: OnceApp): Promise<{ send: Send; close(): Promise<void> }> {
  if (typeof app === 'string' || app instanceof URL) return { send: over(String(app)), close: async () => {} }
  if (app instanceof Server) return app.listening ? { send: over(originOf(app)), close: async () => {} } : serve(app)
  if (typeof app === 'function') {
    // `(req, res)` and `(req, res, next)` are Node's; Fetch's function takes one argument.
    if (app.length >= 2) return serve(createServer(app as RequestListener))
    return { send: byFetch(app as (request: Request) => Response | Promise<Response>), close: async () => {} }
  }
  if ('inject' in app) return { send: byInject(app), close: async () => {} }
  if ('fetch' in app) return { send: byFetch((request) => app.fetch(request)), close: async () => {} }
  return { send: async (request) => app.send(request), close: async () => {} }
}

async function serve(server: Server<typeof IncomingMessage, typeof ServerResponse>) {
  await new Promise<void>((resolve, reject) => {
    server.once('error', reject).listen(0, '127.0.0.1', resolve)
  })
  return {
    send: over(originOf(server)),
    close: () =>
      new Promise<void>((resolve) => {
        server.close(() => resolve())
        server.closeAllConnections()
      }),
  }
}

function originOf(server: Server): string {
  return `http://127.0.0.1:${(server.address() as AddressInfo).port}`
}

function over(origin: string): Send {
  return async ({ path, ...rest }) =>
    answerOf(await fetch(new URL(path, origin), { ...initOf(rest), redirect: 'manual' }))
}

function byFetch(handler: (request: Request) => Response | Promise<Response>): Send {
  return async ({ path, ...rest }) =>
    answerOf(await handler(new Request(new URL(path, 'http://localhost'), initOf(rest))))
}

function initOf({ method, headers, body }: Omit<OnceRequest, 'path'>) {
  return { method, headers, ...(body !== null && { body }) }
}

async function answerOf(response: Response): Promise<OnceAnswer> {
  return { status: response.status, headers: Object.fromEntries(response.headers), body: await response.text() }
}

function byInject(app: Extract<OnceApp, { inject: unknown }>): Send {
  return async ({ method, path, headers, body }) => {
    const injected = { method, url: path, headers, ...(body !== null && { payload: body }) }
    const { statusCode, headers: received, body: text } = await app.inject(injected as never)
    return { status: statusCode, headers: received as OnceAnswer['headers'], body: text }
  }
}
