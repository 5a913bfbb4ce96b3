import type { Server } from 'node:http'

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
 * Nest, `app.getHttpServer()`; of Koa, `app.callback()`), the origin of one that runs elsewhere, a Fetch function, an object with `fetch`
 * (Hono, a Worker), Fastify (`inject`), supertest (`request(app)`, `request.agent(app)`), or any other by `send`.
 */
export type OnceApp =
  | string
  | URL
  | Server
  // biome-ignore lint/suspicious/noExplicitAny: Express and Connect extend Node's types
  | ((req: any, res: any, next?: any) => unknown)
  | ((request: Request) => Response | Promise<Response>)
  | { fetch(request: Request): Response | Promise<Response> }
  // biome-ignore lint/suspicious/noExplicitAny: as Fastify types it, by overloads
  | { inject(request: any): PromiseLike<{ statusCode: number; headers: object; body: string }> }
  | { send(request: OnceRequest): OnceAnswer | Promise<OnceAnswer> }
  // biome-ignore lint/suspicious/noExplicitAny: supertest's, whose types are not ours
  | { post(path: string): any }
