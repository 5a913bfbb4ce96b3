import type { IdempotencyContext, IdempotencyOptions } from 'once-per-key'
import type { Operator } from 'once-per-key/http'

/**
 * What the suite needs of a framework. To add one, write one file in `frameworks` that exports a `Framework` (or several:
 * versions, servers), and put it into the list of `frameworks/index.ts`. All behaviours and the cross test run on it then.
 *
 * `start` serves one application on a free port of 127.0.0.1:
 *
 * - a route for every method and path: `app.options` go to the framework's `idempotency` (a plugin, a middleware); where
 *   `app.isProtected` is false, the same application without it;
 * - in front of it what such an application has there: the framework's own parsers, so that JSON, forms and
 *   `application/octet-stream` reach the handler; bodies of up to 1 MiB;
 * - behind it `app.handler`, which is written in no framework's words. Give it a `HandlerCall`, and put what it returns in the
 *   framework's words: `res.json(…)`, `reply.send(…)`, `ctx.body = …`, `Response.json(…)`. What it throws is thrown on, as a
 *   handler of the framework would;
 * - `app.onError`, where the framework has error handlers: registered as one.
 *
 * Options of the suite look at requests by `app.headerOf` alone: replace it by what reads a header of whatever the option
 * functions are given (`bindOptions` does so).
 */
export interface Framework {
  readonly name: string
  /** The application sees header lines of one name as one value, as in Fetch: two keys cannot be told from one with a comma. */
  readonly joinsHeaderLines?: true
  /** An application has no error handler behind the library: what a handler throws is no answer. */
  readonly hasNoErrorHandler?: true
  /** What a handler throws is not seen by the library: it cannot tell a `CertainFailure` from what the application answers. */
  readonly hidesErrors?: true
  /** The library reads bodies itself, with a limit of its own (`maxBodyBytes`). */
  readonly readsBodies?: true
  start(app: App): Promise<Started>
}

export interface App {
  readonly handler: Handler
  /** Without `scope` and the other functions of the request: `bindOptions(app, headerOf)` makes options of them. */
  readonly options: SuiteOptions
  readonly isProtected: boolean
  readonly onError?: ((error: unknown) => Reply) | undefined
}

/** Options whose functions see a request by its headers alone. */
export interface SuiteOptions
  extends Omit<
    IdempotencyOptions<never>,
    'scope' | 'skip' | 'fingerprint' | 'isSuccess' | 'isCertainFailure' | 'renderProblem'
  > {
  readonly scope: (headerOf: HeaderOf) => string | null | undefined | Promise<string>
  readonly skip?: (headerOf: HeaderOf) => boolean
  readonly isSuccess?: IdempotencyOptions<unknown>['isSuccess']
  readonly isCertainFailure?: IdempotencyOptions<unknown>['isCertainFailure']
  readonly renderProblem?: IdempotencyOptions<unknown>['renderProblem']
}

/** Reads a header (its name in lower case). */
export type HeaderOf = (name: string) => string | undefined

/** The options for a framework, by how it reads a header of what the option functions are given. */
export function bindOptions<Req>(
  { options }: App,
  headerOf: (request: Req, name: string) => string | null | undefined,
): IdempotencyOptions<Req> {
  const { scope, skip, ...others } = options
  const headersOf =
    (request: Req): HeaderOf =>
    (name) =>
      headerOf(request, name) ?? undefined
  return {
    ...(others as Omit<IdempotencyOptions<Req>, 'scope'>),
    scope: (request) => scope(headersOf(request)),
    ...(skip && { skip: (request: Req) => skip(headersOf(request)) }),
  }
}

export interface Started {
  readonly port: number
  readonly once: Operator & { idle(): Promise<void> }
  close(): Promise<void>
}

/** A handler, in no framework's words. */
export type Handler = (call: HandlerCall) => Reply | Promise<Reply>

export interface HandlerCall {
  readonly idempotency: IdempotencyContext | undefined
  /** The body's JSON, as handlers of the framework read it. */
  json(): unknown
  /** A body of `application/octet-stream`, as handlers of the framework read it. */
  bytes(): Uint8Array | Promise<Uint8Array>
}

/** What a handler answers; one of the bodies, or none. */
export interface Reply {
  /** @default 200; 302 where it redirects */
  readonly status?: number
  /** Lines: a name may come several times. */
  readonly headers?: readonly (readonly [name: string, value: string])[]
  readonly json?: unknown
  readonly text?: string
  readonly bytes?: Uint8Array
  /** Written as it is read, and no faster; where it throws, the handler has failed in the middle of its answer. */
  readonly stream?: AsyncIterable<Uint8Array>
  readonly redirect?: string
}
