import { createServer, type IncomingMessage, Server, type ServerResponse } from 'node:http'
import type { AddressInfo } from 'node:net'

type Send = (request: OnceRequest) => Promise<OnceAnswer>

/** How requests reach an application, and what ends that. */
export async function connectApp(app: OnceApp): Promise<{ send: Send; close(): Promise<void> }> {
  if (typeof app === 'string' || app instanceof URL) return { send: createHttpSend(String(app)), close: async () => {} }
  if (app instanceof Server)
    return app.listening ? { send: createHttpSend(getOrigin(app)), close: async () => {} } : startServer(app)
  if (typeof app === 'function') {
    // `(req, res)` and `(req, res, next)` are Node's; Fetch's function takes one argument.
    if (app.length >= 2) return startListener(app as Listener)
    return { send: createFetchSend(app as (request: Request) => Response | Promise<Response>), close: async () => {} }
  }
  return { send: createObjectSend(app), close: async () => {} }
}

function createObjectSend(given: Exclude<OnceApp, string | URL | Server | ((...args: never[]) => unknown)>): Send {
  const app = Object(given) as typeof given // A caller without types may pass anything.
  if ('inject' in app) return createInjectSend(app)
  if ('fetch' in app) return createFetchSend((request) => app.fetch(request, {}, CONTEXT_OF_A_WORKER))
  if ('send' in app) return async (request) => app.send(request)
  if ('post' in app) return createSupertestSend(app)
  throw new TypeError(
    'expectOnce cannot send to this application. Give it a (req, res) function (Koa: app.callback()), a http.Server (Nest: ' +
      'app.getHttpServer()), an origin, a Fetch function, an object with fetch or inject, supertest’s request(app), or { send(request) }.',
  )
}

/** What a Worker leaves to its platform may fail there, unseen by its client. */
const CONTEXT_OF_A_WORKER = {
  waitUntil: (pending: unknown) => void Promise.resolve(pending).catch(() => {}),
  passThroughOnException() {},
}

async function startServer(server: Server<typeof IncomingMessage, typeof ServerResponse>) {
  await new Promise<void>((resolve, reject) => {
    server.once('error', reject).listen(0, '127.0.0.1', resolve)
  })
  return {
    send: createHttpSend(getOrigin(server)),
    close: () =>
      new Promise<void>((resolve) => {
        server.close(() => resolve())
        server.closeAllConnections()
      }),
  }
}

type Listener = (req: IncomingMessage, res: ServerResponse) => unknown

/** A function for Fetch with a second parameter, such as a route handler of Next.js, cannot be told from Node's before it is called. */
async function startListener(listener: Listener) {
  let failure: Error | undefined
  const server = createServer(async (req, res) => {
    try {
      if ((await listener(req, res)) instanceof Response) throw new TypeError('It returned a Response.')
    } catch (cause) {
      failure = new TypeError(
        'The application failed before it answered. It has two parameters or more, so it was called as (req, res). If it takes a ' +
          `Request, pass (request) => POST(request, context). The failure: ${cause}`,
        { cause },
      )
      res.destroy()
    }
  })
  const { send, close } = await startServer(server)
  return {
    close,
    send: (request: OnceRequest) =>
      send(request).catch((error) => {
        throw failure ?? error
      }),
  }
}

function getOrigin(server: Server): string {
  return `http://127.0.0.1:${(server.address() as AddressInfo).port}`
}

function createHttpSend(origin: string): Send {
  return async ({ path, ...rest }) =>
    toOnceAnswer(await fetch(new URL(path, origin), { ...toRequestInit(rest), redirect: 'manual' }))
}

function createFetchSend(handler: (request: Request) => Response | Promise<Response>): Send {
  return async ({ path, ...rest }) =>
    toOnceAnswer(await handler(new Request(new URL(path, 'http://localhost'), toRequestInit(rest))))
}

function toRequestInit({ method, headers, body }: Omit<OnceRequest, 'path'>) {
  return { method, headers, ...(body !== null && { body }) }
}

async function toOnceAnswer(response: Response): Promise<OnceAnswer> {
  return { status: response.status, headers: Object.fromEntries(response.headers), body: await response.text() }
}

function createInjectSend(app: Extract<OnceApp, { inject: unknown }>): Send {
  return async ({ method, path, headers, body }) => {
    const injected = { method, url: path, headers, ...(body !== null && { payload: body }) }
    const { statusCode, headers: received, body: text } = await app.inject(injected as never)
    return { status: statusCode, headers: received as OnceAnswer['headers'], body: text }
  }
}

/** A `Test` of supertest is sent when it is awaited; `ok`: no status is an error. */
interface SupertestRequest extends PromiseLike<{ status: number; headers: OnceAnswer['headers']; text?: string }> {
  set(headers: object): SupertestRequest
  redirects(most: number): SupertestRequest
  ok(isOk: () => boolean): SupertestRequest
  send(body: string | undefined): SupertestRequest
}

function createSupertestSend(app: object): Send {
  return async ({ method, path, headers, body }) => {
    const start = (app as Record<string, ((path: string) => SupertestRequest) | undefined>)[method.toLowerCase()]
    if (start === undefined) throw new TypeError(`The application under test has no function for ${method}.`)
    const request = start
      .call(app, path)
      .set(headers)
      .redirects(0)
      .ok(() => true)
    const { status, headers: received, text = '' } = await request.send(body ?? undefined)
    return { status, headers: received, body: text }
  }
}

/** A request as it is sent. */
export interface OnceRequest {
  readonly method: string
  /** With its query. */
  readonly path: string
  readonly headers: Readonly<Record<string, string>>
  readonly body: string | null
}

/** What came back; header names in lower case. */
export interface OnceAnswer {
  readonly status: number
  readonly headers: Readonly<Record<string, string | readonly string[] | undefined>>
  readonly body: string
}

/**
 * An application under test: an Express app or another `(req, res)` function, a `http.Server` (it is started if it is not listening; of
 * Nest, `app.getHttpServer()`; of Koa, `app.callback()`), the origin of one that runs elsewhere, a Fetch function of one parameter, an
 * object with `fetch` (Hono, a Worker), Fastify (`inject`), supertest (`request(app)`, `request.agent(app)`), or any other by `send`.
 */
export type OnceApp =
  | string
  | URL
  | Server
  // biome-ignore lint/suspicious/noExplicitAny: Express and Connect extend Node's types
  | ((req: any, res: any, next?: any) => unknown)
  | ((request: Request) => Response | Promise<Response>)
  // biome-ignore lint/suspicious/noExplicitAny: a Worker's environment and context, as it types them
  | { fetch(request: Request, ...rest: any[]): Response | Promise<Response> }
  // biome-ignore lint/suspicious/noExplicitAny: as Fastify types it, by overloads
  | { inject(request: any): PromiseLike<{ statusCode: number; headers: object; body: string }> }
  | { send(request: OnceRequest): OnceAnswer | Promise<OnceAnswer> }
  // biome-ignore lint/suspicious/noExplicitAny: supertest's, whose types are not ours
  | { post(path: string): any }
