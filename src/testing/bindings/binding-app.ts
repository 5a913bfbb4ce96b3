import { Buffer } from 'node:buffer'
import { request as overHttp } from 'node:http'
import type { IdempotencyContext } from '../../core/index.js'
import type { IdempotencyOptions } from '../../http/index.js'

/** One application, to be served through the binding under test: one route for every method and path. */
export interface BindingApp {
  /** False: the same application without the library, to compare with. */
  readonly isProtected: boolean
  /** `bindOptions(app, header)` returns them for your binding. */
  readonly options: BindingOptions
  /** Put what it returns into your framework's words: `res.json(…)`, `ctx.body = …`. What it throws, throw on. */
  readonly handler: (call: BindingCall) => BindingReply | Promise<BindingReply>
  /** Register it as an error handler, if the framework has them; without it, errors are answered as the framework does. */
  readonly onError?: ((error: unknown) => BindingReply) | undefined
}

/** Options whose functions read nothing of a request but its headers. */
export interface BindingOptions
  extends Omit<IdempotencyOptions<unknown>, 'scope' | 'skip' | 'fingerprint' | 'firstSent'> {
  readonly scope: (header: ReadHeader) => string | null | undefined | Promise<string>
  readonly skip?: (header: ReadHeader) => boolean
  readonly firstSent?: (header: ReadHeader) => Date | undefined
}

/** Reads a header; its name is in lower case. */
export type ReadHeader = (name: string) => string | undefined

/** What a handler receives. */
export interface BindingCall {
  readonly idempotency: IdempotencyContext | undefined
  /** The body's JSON, as handlers of the framework read it. */
  json(): unknown
  /** A body of `application/octet-stream`, as handlers of the framework read it. */
  bytes(): Uint8Array | Promise<Uint8Array>
}

/** What a handler answers, with one of the bodies or none. */
export interface BindingReply {
  /** @default 200; 302 for a redirect */
  readonly status?: number
  /** One line each: the same name may occur several times. */
  readonly headers?: readonly (readonly [name: string, value: string])[]
  readonly json?: unknown
  readonly text?: string
  readonly bytes?: Uint8Array
  /** Where to; the application may add a body. */
  readonly redirect?: string
}

/** The application's options for a binding, which says how to read a header of what its option functions receive. */
export function bindOptions<Req>(
  { options }: Pick<BindingApp, 'options'>,
  header: (request: Req, name: string) => string | null | undefined,
): IdempotencyOptions<Req> {
  const { scope, skip, firstSent, ...others } = options
  const reader =
    (request: Req): ReadHeader =>
    (name) =>
      header(request, name) ?? undefined
  return {
    ...(others as Omit<IdempotencyOptions<Req>, 'scope'>),
    scope: (request) => scope(reader(request)),
    ...(skip && { skip: (request: Req) => skip(reader(request)) }),
    ...(firstSent && { firstSent: (request: Req) => firstSent(reader(request)) }),
  }
}

/** A request as one law sends it. */
export interface BindingRequest {
  readonly method: string
  /** Path and query. */
  readonly target: string
  /** One line each: the same name may occur several times. */
  readonly headers: readonly (readonly [name: string, value: string])[]
  readonly body: Uint8Array<ArrayBuffer> | null
  /** Aborts when the client leaves. */
  readonly signal: AbortSignal
}

/** A response as its client sees it. */
export interface BindingResponse {
  readonly status: number
  /** One line each, in their order. */
  readonly headers: readonly (readonly [name: string, value: string])[]
  readonly body: Uint8Array
}

export type SendToBinding = (request: BindingRequest) => Promise<BindingResponse>

/** Sends each request to a port of 127.0.0.1, on a connection of its own. */
export function sendTo(port: number): SendToBinding {
  return ({ method, target, headers, body, signal }) =>
    new Promise((resolve, reject) => {
      const lines = [['Host', `127.0.0.1:${port}`], ...headers]
      if (body !== null) lines.push(['Content-Length', `${body.byteLength}`])
      const options = { host: '127.0.0.1', port, method, path: target, headers: lines.flat(), agent: false, signal }
      const sent = overHttp(options, (response) => {
        const chunks: Buffer[] = []
        response.on('data', (chunk: Buffer) => chunks.push(chunk))
        response.on('error', reject)
        response.on('end', () => {
          const { statusCode: status = 0, rawHeaders } = response
          resolve({ status, headers: toHeaderPairs(rawHeaders), body: Buffer.concat(chunks) })
        })
      })
      sent.on('error', reject)
      sent.end(body ?? undefined)
    })
}

function toHeaderPairs(rawHeaders: readonly string[]): [string, string][] {
  return rawHeaders.flatMap((name, i) => (i % 2 === 0 ? [[name, rawHeaders[i + 1] ?? '']] : []))
}
