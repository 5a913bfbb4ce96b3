import type { IncomingMessage, ServerResponse } from 'node:http'
import {
  type IdempotencyContext,
  IdempotencyError,
  isCertainFailure,
  type MaybePromise,
  whenever,
} from '../core/index.js'
import {
  controlsOf,
  createRequestEngine,
  type Decision,
  type HeaderPairs,
  type IdempotencyOptions,
  type Operator,
  type RequestRun,
} from '../http/index.js'
import { factsOf } from '../node/facts.js'
import { roomy } from '../node/faked.js'
import { HeldResponse } from '../node/held-response.js'
import type { Outlet } from '../node/outlet.js'
import { sendAnswer } from '../node/send.js'
import type { Binding, Other } from '../node/way-out.js'
import { watchCertainFailures } from './certain-failures.js'

declare global {
  namespace Express {
    interface Request {
      /** The context of a protected request's run; absent if the request had no key. */
      idempotency?: IdempotencyContext | undefined
    }
  }
}

/** The request that the option functions receive, including what the application declares on Express's type. */
export type IdempotencyRequest = IncomingMessage &
  Express.Request & {
    originalUrl: string
    /** The path below the mount point, set by Express; absent on plain `node:http`. */
    path: string
    // biome-ignore lint/suspicious/noExplicitAny: as in Express: the type of a body depends on the parser
    body?: any
    get(name: string): string | undefined
  }

/** Middleware for Express 4 and 5, Connect, and plain `node:http`; `inspect` and `resolve` are for operators. */
export interface Middleware extends Operator {
  (req: IncomingMessage, res: ServerResponse, next: (err?: unknown) => void): void
  /**
   * Resolves when no run is active and no completion is pending. Call it after `server.close()` and before closing the
   * store's client.
   */
  idle(): Promise<void>
}

/**
 * Express-compatible middleware: a request that is retried with its `Idempotency-Key` gets the answer of the first one,
 * and the handler does not run again. Mount it after authentication and body parsers, before the handler.
 *
 * Misuse by the application is passed to `next` as an IdempotencyError; the handler does not run, and nothing is
 * stored.
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
  const engine = createRequestEngine<Req>(options)
  const binding: Binding = {
    sendOther: ({ req, res, extraHeaders, outlet }, other) => send(other, req as Req, res, extraHeaders, outlet),
  }

  function protect(req: Req & Extended, res: ServerResponse, next: Next): MaybePromise<void> {
    if (req.idempotency !== undefined) return next(mountedTwice())
    const decided = engine.decide(factsOf(req, req, req.originalUrl ?? req.url ?? '', req.body))
    return decided instanceof Promise ? carryOutLater(decided, req, res, next) : carryOut(decided, req, res, next)
  }

  /** Separate, so that what is decided at once pays for no closure: V8 allocates for closures on entry to the function around them. */
  async function carryOutLater(decided: Promise<Decision>, req: Req & Extended, res: ServerResponse, next: Next) {
    return carryOut(await decided, req, res, next)
  }

  function carryOut(decision: Decision, req: Req & Extended, res: ServerResponse, next: Next): MaybePromise<void> {
    switch (decision.action) {
      case 'bypass':
        return next()
      case 'execute':
        return execute(decision, req, res, next)
      case 'replay':
      case 'reject':
        if (res.headersSent) return refuseBegun(res, next)
        roomy(res)
        return send(decision, req, res, decision.extraHeaders)
    }
  }

  function execute({ run, extraHeaders = [] }: Execute, req: Req & Extended, res: ServerResponse, next: Next) {
    if (res.headersSent) return whenever(run.fail(), () => refuseBegun(res, next))
    watchCertainFailures(req, reportCertainFailure)
    try {
      roomy(req)
      roomy(res)
      new HeldResponse(req, res, run, extraHeaders, binding, next)
      req.idempotency = run.context
      req[RUN] = run
    } catch (error) {
      return whenever(run.fail(), () => next(error))
    }
    return next()
  }

  function send(decided: Other, req: Req, res: ServerResponse, extraHeaders?: HeaderPairs, outlet?: Outlet): void {
    const isReplay = decided.action === 'replay'
    const answer = isReplay ? decided.answer : engine.answerOf(decided.problem, req)
    sendAnswer(req, res, answer, isReplay, extraHeaders, outlet)
  }

  return asMiddleware(engine, (req, res, next) => protect(req as Req, res, next))
}

/** Whatever is thrown, synchronously or not, is passed to `next`. */
function asMiddleware(
  engine: Pick<Middleware, 'idle' | keyof Operator>,
  protect: (req: IncomingMessage, res: ServerResponse, next: Next) => MaybePromise<void>,
): Middleware {
  const middleware = (req: IncomingMessage, res: ServerResponse, next: Next): void => {
    try {
      const done = protect(req, res, next)
      if (done instanceof Promise) catchLater(done, req, next)
    } catch (error) {
      fail(error, req, next)
    }
  }
  return Object.assign(middleware, controlsOf(engine))
}

function catchLater(done: Promise<void>, req: IncomingMessage, next: Next): void {
  done.catch((error) => fail(error, req, next))
}

function fail(error: unknown, req: IncomingMessage, next: Next): void {
  // On plain node:http: what a handler throws synchronously.
  if (isCertainFailure(error)) reportCertainFailure(req, true)
  next(error)
}

function reportCertainFailure(req: IncomingMessage & Extended, failsCertainly: boolean): void {
  req[RUN]?.willFailCertainly(failsCertainly)
}

type Next = (err?: unknown) => void
type Execute = Extract<Decision, { action: 'execute' }>

/** The property with a request's run, used in this file only. */
const RUN = Symbol('run')

interface Extended {
  [RUN]?: RequestRun
  readonly originalUrl?: string
  readonly body?: unknown
  idempotency?: IdempotencyContext | undefined
}

/**
 * If the response has ended, other middleware has responded, for example a time limit. If it has only begun, it can no
 * longer be held.
 */
function refuseBegun(res: ServerResponse, next: (err?: unknown) => void): void {
  if (res.writableEnded) return
  next(
    new IdempotencyError(
      'response_begun',
      'The response was begun before the idempotency middleware, so it cannot be stored before it is sent. Mount middleware ' +
        'that writes to it after the idempotency middleware.',
    ),
  )
}

function mountedTwice(): IdempotencyError {
  return new IdempotencyError(
    'mounted_twice',
    'This request has already passed the middleware, and would find its own claim in flight. Mount it once for each route: ' +
      'with app.use() or on the route, not both.',
  )
}
