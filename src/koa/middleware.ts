import type { Context, Next } from 'koa'
import { type IdempotencyContext, refuseFactory, refuseMount } from '../core/index.js'
import { type Controls, createRequestEngine, type IdempotencyOptions, pickControls } from '../http/index.js'
import {
  assertNotBuffered,
  bufferResponse,
  hasContent,
  hasOtherAnswer,
  isEmptyObject,
  NodeFacts,
  resolveEmptyBody,
} from '../node/hold.js'
import { KoaAnswer, setAnswer } from './koa-answer.js'

declare module 'koa' {
  interface ExtendableContext {
    /** The context of a protected request's run; absent if the request had no key. */
    idempotency?: IdempotencyContext | undefined
  }
}

/** Middleware for Koa; `inspect`, `resolve` and `unknown` are for operators. */
export interface Middleware extends Controls {
  (ctx: Context, next: Next): Promise<void>
}

/**
 * Middleware for Koa: a request that is retried with its `Idempotency-Key` gets the answer of the first one, and the
 * handler does not run again. Mount it after authentication, body parsers and error handlers, before the handler.
 * What earlier middleware does to an answer, for example compression, is not stored, and is done to replays as well.
 *
 * Misuse by the application is thrown as an IdempotencyError; the handler does not run, and nothing is stored.
 *
 * @example
 * const once = idempotency({ store: new MemoryStore(), scope: (ctx) => ctx.state.merchantId })
 * app.use(authenticate).use(bodyParser()).use(once).use(createPayout)
 *
 * @throws IdempotencyError `options_invalid`, which lists every mistake; nothing was built.
 */
export function idempotency(options: IdempotencyOptions<Context>): Middleware
export function idempotency(options: IdempotencyOptions<Context>, ...plugin: readonly unknown[]): Middleware {
  if (typeof plugin[1] === 'function') return refuseFactory(FOR, [options, ...plugin]) as never // Fastify's `register`: it catches nothing.
  const engine = createRequestEngine<Context>(options)

  async function protect(ctx: Context, next: Next, ...more: readonly unknown[]): Promise<void> {
    if (typeof ctx?.onerror !== 'function') return refuseMount(FOR, [ctx, next, ...more])
    assertNotBuffered(ctx.res)
    const decided = engine.decide(new NodeFacts(ctx.req, ctx, ctx.originalUrl, getParsedBody(ctx)))
    const decision = decided instanceof Promise ? await decided : decided
    switch (decision.action) {
      case 'bypass':
        return next()
      case 'execute': {
        const { run, extraHeaders = [] } = decision
        const { req, res } = ctx
        const onError = (error: unknown) => ctx.onerror(error as Error)
        const held = bufferResponse(engine, run, extraHeaders, { req, res, request: ctx, onError })
        const response = held instanceof Promise ? await held : held
        if (response === null) return
        ctx.idempotency = run.context
        return new KoaAnswer(ctx, run, response).runHandler(next)
      }
      case 'replay':
      case 'reject':
        if (hasOtherAnswer(ctx.res)) return
        return setAnswer(ctx, engine.answerFor(decision, ctx), decision.extraHeaders)
    }
  }

  return Object.assign(protect, pickControls(engine))
}

const FOR = '`idempotency` of once-per-key/koa is middleware for Koa'

interface ParsedKoaRequest {
  readonly body?: unknown
  /** Of `koa-bodyparser` and `@koa/bodyparser`: the text; `undefined`: the parser has left the body alone. */
  readonly rawBody?: unknown
}

/**
 * Koa's body parsers keep the body there. Those that have `rawBody` set `{}` also on a request that they leave alone, whose body something
 * else may have read, perhaps into `rawBody`: then `{}` would be the body of every such request.
 */
function getParsedBody({ req, request }: Context): unknown {
  const { body, rawBody } = request as ParsedKoaRequest
  if (!('rawBody' in request) || !isEmptyObject(body)) return body
  if (rawBody === undefined) return undefined
  return hasContent(rawBody) ? resolveEmptyBody(req) : body
}
