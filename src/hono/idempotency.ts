import type { Context, Env, MiddlewareHandler } from 'hono'
import { type IdempotencyContext, refuseFactory, refuseMount, resolveOptions } from '../core/index.js'
import { handleFetchRequest } from '../fetch/execution.js'
import { readingOptions } from '../fetch/options.js'
import {
  type Controls,
  createRequestEngine,
  type IdempotencyOptions,
  pickControls,
  type RequestRun,
  type WaitUntil,
} from '../http/index.js'

declare module 'hono' {
  interface ContextVariableMap {
    /** The context of a protected request's run; `undefined` if the request had no key. */
    idempotency: IdempotencyContext | undefined
  }
}

/** As elsewhere, but the option functions receive Hono's context. */
export interface HonoIdempotencyOptions<E extends Env> extends IdempotencyOptions<Context<E>> {
  /**
   * How much of a body is read for comparison. A larger one is refused with 413 `body_too_large`; without a key, or if
   * `skip` returns true, the request passes.
   * @default 1_048_576 (1 MiB): it is held in memory
   */
  readonly maxBodyBytes?: number | undefined
}

/** Middleware for Hono; `inspect` and `resolve` are for operators. */
export interface Middleware<E extends Env> extends MiddlewareHandler<E>, Controls {}

/**
 * Middleware for Hono: a request that is retried with its `Idempotency-Key` gets the answer of the first one, and the
 * handler does not run again. Mount it after authentication, before the handler. The response of `app.onError` to an
 * error counts as the answer.
 *
 * Misuse by the application is thrown as an IdempotencyError; the handler does not run, and nothing is stored.
 *
 * @example
 * const once = idempotency({ store: new MemoryStore(), scope: (c) => c.get('merchantId') })
 * app.post('/payouts', authenticate, once, async (c) => c.json(await pay(await c.req.json()), 201))
 *
 * @throws IdempotencyError `options_invalid`, which lists every mistake; nothing was built.
 */
// biome-ignore lint/suspicious/noExplicitAny: as in Hono, where a middleware fits any application
export function idempotency<E extends Env = any>(options: HonoIdempotencyOptions<E>): Middleware<E>
export function idempotency<E extends Env>(
  options: HonoIdempotencyOptions<E>,
  ...plugin: readonly unknown[]
): Middleware<E> {
  if (typeof plugin[1] === 'function') return refuseFactory(FOR, [options, ...plugin]) as never // Fastify's `register`: it catches nothing.
  const { maxBodyBytes } = resolveOptions<{ maxBodyBytes: number }>('idempotency()', options, readingOptions)
  const { maxBodyBytes: _, ...given } = options
  const engine = createRequestEngine<Context<E>>(given)

  const middleware: MiddlewareHandler<E> = async (c, next, ...more: readonly unknown[]) => {
    if (c?.req?.raw === undefined) return refuseMount(FOR, [c, next, ...more])
    const call = {
      request: c.req.raw,
      asked: c,
      maxBodyBytes,
      keptBody: () => readKeptBody(c),
      headers: () => copyEarlierHeaders(c),
      sendsThrown: false, // Hono handles what is thrown only if it is an Error.
      waitUntil: () => findWaitUntil(c),
    }
    const passes = async (): Promise<undefined> => void (await next())
    const wasFinalized = c.finalized
    let isAnswered = false
    const response = await handleFetchRequest(engine, call, passes, async (run) => {
      isAnswered = c.finalized && !wasFinalized
      if (isAnswered) return failUnrun(run, c)
      c.set('idempotency', run.context)
      await next()
      if (!c.finalized) throw notFinalizedError()
      run.reportError(c.error) // `app.onError` has handled it.
      return c.res
    })
    if (response === undefined || isAnswered) return
    c.res = undefined // Otherwise Hono would merge its headers into the new ones.
    c.res = response
  }

  return Object.assign(middleware, pickControls(engine))
}

const FOR = '`idempotency` of once-per-key/hono is middleware for Hono'

/**
 * The response's headers before the handler. Not read from `c.res`, which would make a response: Hono sets the headers of an earlier
 * response over the handler's own. A copy, because @hono/node-server's Response shares the headers that it is given.
 */
function copyEarlierHeaders(c: Context): Headers {
  return new Headers(c.newResponse(null, 200).headers)
}

/** Somebody else has answered while the key was being claimed, for example a time limit in front: the handler must not run. */
async function failUnrun(run: RequestRun, c: Context): Promise<Response> {
  await run.failUncalled()
  return c.newResponse(null, 200) // Nobody gets it.
}

/** As Hono without this middleware; `c.res` would be an empty 200. */
function notFinalizedError(): Error {
  return new Error('Context is not finalized. Did you forget to return a Response object or `await next()`?')
}

/** Hono keeps what `c.req.json()` and similar functions have read; a parsed form no longer has its bytes. */
async function readKeptBody({ req }: Context): Promise<Uint8Array | null> {
  const { json, text, arrayBuffer, blob } = req.bodyCache
  return (json ?? text ?? arrayBuffer ?? blob) === undefined ? null : new Uint8Array(await req.arrayBuffer())
}

/** Workers and other platforms that stop after a response have one; otherwise Hono throws, which costs more than a claim in memory. */
function findWaitUntil(c: Context): WaitUntil | undefined {
  try {
    const { executionCtx } = c
    return (pending) => executionCtx.waitUntil(pending)
  } catch {
    return undefined
  }
}
