import { IncomingMessage, ServerResponse } from 'node:http'
import {
  type Answer,
  type IdempotencyContext,
  IdempotencyError,
  mountedTwiceError,
  refuseFactory,
  refuseMount,
  runAfterwards,
} from '../core/index.js'
import {
  bodyHeaders,
  type Controls,
  createRequestEngine,
  type Decision,
  type HeaderPairs,
  type IdempotencyOptions,
  pickControls,
  type RequestEngine,
  type RequestRun,
  withoutBody as withoutBodyOfAny,
} from '../http/index.js'
import { isBuffered } from '../node/faked.js'
import { BufferedResponse } from '../node/held-response.js'
import {
  hasContent,
  isEmptyObject,
  isWithoutErrorParameter,
  mayHaveContent,
  NodeFacts,
  resolveEmptyBody,
  responseBegunError,
} from '../node/hold.js'
import { nothingThrownError } from '../node/node-errors.js'
import type { OriginalMethods } from '../node/sending/outlet.js'
import type { Replacement, ReplacementSender, ResponseSender } from '../node/sending/response-sender.js'
import { sendAnswer } from '../node/sending/send.js'
import { watchErrors } from './errors-of-handlers.js'

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
export interface Middleware extends Controls {
  (req: IncomingMessage, res: ServerResponse, next: (err?: unknown) => void): void
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
): Middleware
export function idempotency<Req extends IncomingMessage>(
  options: IdempotencyOptions<Req>,
  ...plugin: readonly unknown[]
): Middleware {
  if (typeof plugin[1] === 'function') return refuseFactory(FOR, [options, ...plugin]) as never // Fastify's `register`: it catches nothing.
  const engine = createRequestEngine<Req>(options)
  const protect = createProtection(engine)
  // Express takes a function of four parameters for an error handler.
  const middleware = (req: IncomingMessage, res: ServerResponse, next: Next): void => {
    if (typeof res?.setHeader !== 'function') refuseMount(FOR, [req, res, next])
    else if (typeof next !== 'function') throw nextMissingError()
    else protect(req, res, isWithoutErrorParameter(req, next) ? createErrorSendingNext(res, next) : next)
  }
  return Object.assign(middleware, pickControls(engine))
}

/** Fastify would register it as a plugin, without a request, and start unprotected; Hono and Koa give no `next` here. */
const FOR = '`idempotency` of once-per-key is middleware for Express, Connect and node:http'

function nextMissingError(): IdempotencyError {
  return new IdempotencyError(
    'arguments_invalid',
    'The middleware was called without `next`, by which it goes on to the handler, so nothing ran. On plain node:http call ' +
      '`once(req, res, (error) => { … })` with what answers the request, or the error.',
  )
}

/** It would take an error for a request to handle: unprotected, or for the second time. */
function createErrorSendingNext(res: ServerResponse, next: Next): Next {
  return (error) => {
    if (error === undefined) return next()
    console.error(errorNotPassedError(error))
    if (res.headersSent) return void res.destroy()
    // The handler may have announced a body.
    for (const name of [...bodyHeaders, 'content-length']) res.removeHeader(name)
    res.writeHead(500).end()
  }
}

function errorNotPassedError(cause: unknown): IdempotencyError {
  return new IdempotencyError(
    'arguments_invalid',
    'The callback of the middleware takes no error, so it was not called with this one, and the client got 500. On plain node:http ' +
      'write `once(req, res, (error) => { … })`, and answer the error there.',
    { cause },
  )
}

/** Hears of a replay or a refusal that was sent in place of the handler's answer. */
type OnAnswered = (answer: Answer, isReplay: boolean) => void

/** The middleware alone, for a framework on top of Express that must hear of what was answered without a run. */
export function createProtection<Req extends IncomingMessage>(
  engine: RequestEngine<Req>,
): (req: IncomingMessage, res: ServerResponse, next: Next, onAnswered?: OnAnswered) => void {
  const sender = new ExpressReplacementSender(engine)
  return (req, res, next, onAnswered) => {
    if (isBuffered(res)) return next(mountedTwiceError())
    const exchange: Exchange<Req & ExpressProperties> = {
      req: req as Req & ExpressProperties,
      res,
      next,
      sender,
      onAnswered,
    }
    try {
      const decided = engine.decide(createNodeFacts(exchange.req))
      if (decided instanceof Promise) {
        decided.then((decision) => carryOut(decision, exchange)).catch((error) => passError(error, exchange))
      } else carryOut(decided, exchange)
    } catch (error) {
      passError(error, exchange)
    }
  }
}

/** A request that passes the middleware, with its response. */
interface Exchange<Req extends IncomingMessage> {
  readonly req: Req
  readonly res: ServerResponse
  readonly next: Next
  readonly sender: ExpressReplacementSender<Req>
  readonly onAnswered: OnAnswered | undefined
}

function createNodeFacts<Req extends IncomingMessage & ExpressProperties>(req: Req): NodeFacts<Req> {
  return new NodeFacts(req, req, req.originalUrl ?? req.url ?? '', resolveParsedBody(req))
}

/** Sends what is not the handler's own answer. One for all requests of a middleware. */
class ExpressReplacementSender<Req extends IncomingMessage> implements ReplacementSender {
  readonly #engine: Pick<RequestEngine<Req>, 'answerFor'>

  constructor(engine: Pick<RequestEngine<Req>, 'answerFor'>) {
    this.#engine = engine
  }

  sendReplacement({ req, res, extraHeaders, outlet }: ResponseSender, other: Replacement): void {
    this.send(other, req as Req, res, extraHeaders, outlet)
  }

  send(
    decided: Replacement,
    req: Req,
    res: ServerResponse,
    extraHeaders?: HeaderPairs,
    outlet?: OriginalMethods,
  ): Answer {
    const answer = this.#engine.answerFor(decided, req)
    sendAnswer(req, res, answer, decided.action === 'replay', extraHeaders, outlet)
    return answer
  }
}

/** Runs the handler, or answers in its place. */
function carryOut<Req extends IncomingMessage & ExpressProperties>(decision: Decision, exchange: Exchange<Req>): void {
  const { res, next } = exchange
  if (decision.action === 'bypass') next()
  else if (decision.action === 'execute') {
    const { run, extraHeaders = NONE } = decision
    if (res.headersSent) runAfterwards(run.failUncalled(), () => refuseBegun(res, next))
    else if (holdResponse(run, extraHeaders, exchange)) next()
  } else if (res.headersSent) refuseBegun(res, next)
  else answer(decision, exchange)
}

/** From now on the handler writes to a held response. If it cannot be held, the run has ended before it began. */
function holdResponse<Req extends IncomingMessage & ExpressProperties>(
  run: RequestRun,
  extraHeaders: HeaderPairs,
  { req, res, next, sender }: Exchange<Req>,
): boolean {
  watchErrors(req, findRun)
  try {
    ensureDictionaryMode(req)
    ensureDictionaryMode(res)
    new BufferedResponse(req, res, run, extraHeaders, sender, next)
    req.idempotency = run.context
    req[RUN] = run
    return true
  } catch (error) {
    runAfterwards(run.failUncalled(), () => next(error))
    return false
  }
}

function answer<Req extends IncomingMessage & ExpressProperties>(
  decision: Replacement,
  { req, res, sender, onAnswered }: Exchange<Req>,
): void {
  ensureDictionaryMode(res)
  const sent = sender.send(decision, req, res, decision.extraHeaders)
  onAnswered?.(sent, decision.action === 'replay')
}

function passError(error: unknown, { req, next }: Exchange<IncomingMessage & ExpressProperties>): void {
  // On plain node:http: what a handler throws synchronously. Without an error, `next` would call the handler again.
  reportError(req, error)
  next(error ?? nothingThrownError(error))
}

const NONE: HeaderPairs = []

/** The handler threw it, or passed it on. */
export function reportError(req: IncomingMessage & ExpressProperties, error: unknown): void {
  req[RUN]?.reportError(error)
}

/** The handler is called again. */
export function forgetError(req: IncomingMessage & ExpressProperties): void {
  req[RUN]?.forgetError()
}

/** The handler sends a stream as its success: should that break, the response is not the handler's refusal. */
export function ruleOutRequestRefusal(req: IncomingMessage & ExpressProperties): void {
  req[RUN]?.willNotRefuse()
}

type Next = (err?: unknown) => void

function findRun(req: IncomingMessage & ExpressProperties): RequestRun | undefined {
  return req[RUN]
}

/** The property with a request's run, used in this file only. */
const RUN = Symbol('run')

/** What is read of a request besides Node's own properties, and what is added to it. */
interface ExpressProperties {
  [RUN]?: RequestRun
  idempotency?: IdempotencyContext | undefined
  readonly originalUrl?: string
  readonly body?: unknown
  /** body-parser 1: it has read the body. */
  readonly _body?: boolean
  readonly rawBody?: unknown
  /** Only Express 4's applications have `_router`. */
  readonly app?: { readonly _router?: unknown }
}

/**
 * What a parser made of the body. body-parser 1, Express 4's, sets `{}` on a request that it leaves alone, and something else may have read
 * its body, for example into `req.rawBody`: then `{}` would be the body of every such request. It marks those that it reads. Without the
 * mark `{}` is a body of two bytes, of a parser of the application's own; of more bytes, nobody can tell (`null`), since Express 5's parsers
 * have no mark there either. On Express 5 and Connect, `req.rawBody` says whether it is.
 */
function resolveParsedBody(req: IncomingMessage & ExpressProperties): unknown {
  const { app, body, _body, rawBody, rawHeaders = [], headers } = req
  if (_body === true || !isEmptyObject(body)) return body
  const isExpress4 = app?._router !== undefined
  if (rawBody === undefined) return isExpress4 && mayHaveContent({ rawHeaders, headers }) ? null : body
  if (!hasContent(rawBody)) return body
  return isExpress4 ? undefined : resolveEmptyBody(req)
}

/**
 * If the response has ended, other middleware has responded, for example a time limit. If it has only begun, it can no
 * longer be held.
 */
function refuseBegun(res: ServerResponse, next: Next): void {
  if (!res.writableEnded) next(responseBegunError())
}

/**
 * Makes adding properties cheap. Express changes the prototype of each request and response, and V8 before 13 (Node 24)
 * shares no hidden class between such objects: each property added afterwards, including Node's `statusMessage`, costs
 * a hidden class of some 1.5 kB that outlives the request. Deleting a property turns an object into a dictionary, which
 * avoids that; every emitter has the property that is deleted here. Does nothing without Express. Without it a first request
 * takes 1.5 times the CPU (Node 20.20, Express 5, the memory store, slices that alternate in one run).
 */
function ensureDictionaryMode(message: IncomingMessage | ServerResponse): void {
  if (SHARES_HIDDEN_CLASSES) return
  const prototype = Object.getPrototypeOf(message)
  if (prototype === ServerResponse.prototype || prototype === IncomingMessage.prototype) return
  const emitter = message as { _maxListeners?: number | undefined }
  const { _maxListeners } = emitter
  // Not `delete`, which throws if the property cannot be deleted.
  if (Reflect.deleteProperty(emitter, '_maxListeners')) emitter._maxListeners = _maxListeners
}

const SHARES_HIDDEN_CLASSES = Number.parseInt(process.versions.v8, 10) >= 13

/**
 * Marks a `fingerprint` that does not use the body, so that nobody needs to have read the body. Without the mark such a
 * request is misuse (`body_not_parsed`): otherwise nobody would notice a parser that is mounted too late, and two
 * requests with different bodies would be the same.
 *
 * @example
 * // The handler streams the body; the client sends its digest.
 * idempotency({ store, scope, fingerprint: withoutBody((req) => req.get('Content-Digest') ?? null) })
 */
export const withoutBody: <Req = IdempotencyRequest>(
  fingerprint: (request: Req) => unknown,
) => (request: Req) => unknown = withoutBodyOfAny
