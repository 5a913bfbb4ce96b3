import { type IdempotencyContext, IdempotencyError, refuseFactory, refuseMount, resolveOptions } from '../core/index.js'
import { type Controls, createRequestEngine, pickControls } from '../http/index.js'
import { handleFetchRequest } from './execution.js'
import { type FetchArguments, type FetchIdempotencyOptions, fetchOptions, toEngineOptions } from './options.js'
import { isRequest } from './request.js'

/** A handler; `idempotency` is absent if the request had no key, or is not covered. A platform may have its own `Req`. */
export type FetchHandler<Rest extends readonly unknown[] = readonly [], Req extends Request = Request> = (
  request: Req,
  idempotency: IdempotencyContext | undefined,
  ...rest: Rest
) => Response | Promise<Response>

export interface HandleOptions {
  /** Whose key it is; replaces the option `scope`. */
  readonly scope?: string
  /**
   * Receives promises, which never reject, of all that must end before the platform stops. Needed where it stops after
   * a response, as Workers do.
   */
  readonly waitUntil?: ((pending: Promise<void>) => void) | undefined
}

/** `once(handler)` returns a handler for the platform; `inspect` and `resolve` are for operators. */
export interface HandlerWrapper extends Controls {
  /** Protects a handler. After `idempotency`, it receives the further arguments of the platform. */
  <Rest extends readonly unknown[], Req extends Request = Request>(
    handler: FetchHandler<Rest, Req>,
  ): (request: Req, ...rest: Rest) => Promise<Response>
  /**
   * Handles one request: with the handler, or instead of it. The handler receives the same request object.
   *
   * Rejects with what the handler threw, after its record was released, and with an IdempotencyError for misuse: then
   * the handler did not run, and nothing was stored.
   */
  handle<Req extends Request>(
    request: Req,
    handler: FetchHandler<readonly [], Req>,
    terms?: HandleOptions,
  ): Promise<Response>
}

/**
 * For handlers that take a Fetch `Request` and return a `Response`: a request that is retried with its
 * `Idempotency-Key` gets the answer of the first one, and the handler does not run again.
 *
 * @example
 * const once = idempotency({ store: new MemoryStore(), scope: (request) => merchantOf(request) })
 * export const POST = once(async (request, idempotency) => Response.json(await pay(await request.json()), { status: 201 }))
 *
 * @throws IdempotencyError `options_invalid`, which lists every mistake; nothing was built.
 */
export function idempotency(options: FetchIdempotencyOptions): HandlerWrapper
export function idempotency(options: FetchIdempotencyOptions, ...plugin: readonly unknown[]): HandlerWrapper {
  if (typeof plugin[1] === 'function') return refuseFactory(PLUGIN, [options, ...plugin]) as never // Fastify's `register`: it catches nothing.
  const { maxBodyBytes } = resolveOptions<{ maxBodyBytes: number }>('idempotency()', options, fetchOptions)
  const engine = createRequestEngine<FetchArguments>(toEngineOptions(options))

  function answer(asked: FetchArguments, handler: Handler, waitUntil?: HandleOptions['waitUntil']): Promise<Response> {
    const { request } = asked
    const call = { request, asked, maxBodyBytes, sendsThrown: true, waitUntil: () => waitUntil }
    return handleFetchRequest(
      engine,
      call,
      () => handler(undefined),
      ({ context }) => handler(context),
    )
  }

  function wrapHandler<Rest extends readonly unknown[], Req extends Request>(
    handler: FetchHandler<Rest, Req>,
    ...more: readonly unknown[]
  ): (request: Req, ...rest: Rest) => Promise<Response> {
    if (typeof handler !== 'function') return refuseMount(WRAPS, [handler, ...more]) as never
    if (options.scope === undefined) throw scopeMissingError()
    return (request, ...rest) =>
      isRequest(request)
        ? answer({ request, rest }, (context) => handler(request, context, ...rest))
        : refuseCall(request, ...rest)
  }

  function handle<Req extends Request>(
    request: Req,
    handler: FetchHandler<readonly [], Req>,
    terms: HandleOptions = {},
  ): Promise<Response> {
    if (!isRequest(request)) return refuseCall(request)
    const told = 'scope' in terms ? { scope: terms.scope as string } : undefined
    return answer({ request, rest: [], told }, (context) => handler(request, context), terms.waitUntil)
  }

  return Object.assign(wrapHandler, {
    handle,
    ...pickControls(engine),
  })
}

/** A handler, with all that it was called with but the context. */
type Handler = (context: IdempotencyContext | undefined) => Response | Promise<Response>

const WRAPS =
  '`once(handler)` of once-per-key/fetch takes a function that gets a Request and returns a Response, and is no middleware itself'
const PLUGIN = '`idempotency` of once-per-key/fetch takes options, and returns what wraps handlers'
const FOR = 'A handler that `once` of once-per-key/fetch has made takes a Request'

async function refuseCall(...args: readonly unknown[]): Promise<never> {
  return refuseMount(FOR, args) as never
}

function scopeMissingError(): IdempotencyError {
  return new IdempotencyError(
    'options_invalid',
    'once(handler) needs the option `scope`: a function of the request that returns the merchant account. To pass it with each call, ' +
      'use once.handle(request, handler, { scope }).',
  )
}
