import type { IncomingMessage, ServerResponse } from 'node:http'
import {
  createEngine,
  type HeaderPairs,
  type IdempotencyContext,
  IdempotencyError,
  type IdempotencyOptions,
  type Operator,
  type RequestFacts,
  type Settled,
} from '../core/index.js'
import { type HoldOptions, holdResponse } from './capture.js'
import { roomy } from './internals.js'
import { sendAnswer, type WayOut } from './send.js'

declare global {
  namespace Express {
    interface Request {
      /** What the handler of a protected request gets; absent where the request had no key. */
      idempotency?: IdempotencyContext | undefined
    }
  }
}

/** What the option functions see of a request, with what the application declares on Express's. */
export type IdempotencyRequest = IncomingMessage &
  Express.Request & {
    originalUrl: string
    // biome-ignore lint/suspicious/noExplicitAny: as in Express, where a body is what the parser made
    body?: any
    get(name: string): string | undefined
  }

/** Middleware for Express 4 and 5, Connect, and plain `node:http`; `inspect` and `resolve` are for operators. */
export interface Middleware extends Operator {
  (req: IncomingMessage, res: ServerResponse, next: (err?: unknown) => void): void
  /**
   * Resolves when no run is left, and no completion is pending. Call it after `server.close()` and before closing the
   * store's client.
   */
  idle(): Promise<void>
}

/**
 * Express-compatible middleware: a request that is sent again with its `Idempotency-Key` gets the first one's answer, and
 * its handler does not run again. Mount it after authentication and body parsers, before the handler.
 *
 * Misuse by the application is passed to `next` as an IdempotencyError; the handler does not run, and nothing is stored.
 *
 * @example
 * const once = idempotency({ store: new MemoryStore(), scope: (req) => req.merchantId })
 * app.post('/payouts', authenticate, express.json(), once, createPayout)
 *
 * @throws IdempotencyError `options_invalid`, which lists every mistake; nothing was built.
 */
export function idempotency<Req extends IncomingMessage = IdempotencyRequest>(
  options: IdempotencyOptions<Req>,
): Middleware {
  const engine = createEngine<Req>(options)

  async function protect(req: Req & Extended, res: ServerResponse, next: (err?: unknown) => void): Promise<void> {
    if (req.idempotency !== undefined) return next(mountedTwice())
    const decision = await engine.decide(factsOf(req))
    switch (decision.action) {
      case 'bypass':
        return next()
      case 'execute': {
        const { execution, extraHeaders = [] } = decision
        if (res.headersSent) {
          await execution.fail()
          return refuseBegun(res, next)
        }
        const sendOther: HoldOptions['sendOther'] = (settled, way) => send(settled, req, res, extraHeaders, way)
        try {
          roomy(req)
          roomy(res)
          holdResponse(req, res, execution, { extraHeaders, sendOther, onError: next })
          req.idempotency = execution
        } catch (error) {
          await execution.fail()
          throw error
        }
        return next()
      }
      case 'replay':
      case 'reject':
        if (res.headersSent) return refuseBegun(res, next)
        roomy(res)
        return send(decision, req, res, decision.extraHeaders)
    }
  }

  function send(
    settled: Exclude<Settled, { action: 'send' }>,
    req: Req,
    res: ServerResponse,
    extraHeaders?: HeaderPairs,
    way?: WayOut,
  ): void {
    const isReplay = settled.action === 'replay'
    const answer = isReplay ? settled.answer : engine.answerOf(settled.problem, req)
    sendAnswer(req, res, answer, isReplay, extraHeaders, way)
  }

  const middleware = (req: IncomingMessage, res: ServerResponse, next: (err?: unknown) => void): void => {
    protect(req as Req & Extended, res, next).catch(next)
  }
  const { idle, inspect, resolve } = engine
  return Object.assign(middleware, { idle, inspect, resolve })
}

interface Extended {
  readonly originalUrl?: string
  readonly body?: unknown
  idempotency?: IdempotencyContext | undefined
}

function factsOf<Req extends IncomingMessage & Extended>(req: Req): RequestFacts<Req> {
  return {
    request: req,
    method: req.method ?? '',
    target: req.originalUrl ?? req.url ?? '',
    rawHeaders: rawHeadersOf(req),
    body: req.body,
    bodyWasRead: req.readableDidRead || req.readableEnded, // A body without a byte ends unread.
    isAbandoned: () => req.socket?.destroyed,
  }
}

/** Adapters without a wire, such as serverless ones, fill `headers` alone: a key there must not go unseen. */
function rawHeadersOf(req: IncomingMessage): readonly string[] {
  if (req.rawHeaders.length > 0) return req.rawHeaders
  return Object.entries(req.headers).flatMap(([name, value]) => [name, String(value)])
}

/** A response that has ended was another's, such as a time limit's; one that has only begun cannot be held any more. */
function refuseBegun(res: ServerResponse, next: (err?: unknown) => void): void {
  if (res.writableEnded) return
  next(
    new IdempotencyError(
      'response_begun',
      'The response was begun before the idempotency middleware, so it cannot be stored before it is sent. Mount whatever ' +
        'writes to it behind the middleware.',
    ),
  )
}

function mountedTwice(): IdempotencyError {
  return new IdempotencyError(
    'mounted_twice',
    'This request has met the middleware before, and would find its own claim in flight. Mount it once on each route: ' +
      'with app.use() or on the route, not both.',
  )
}
