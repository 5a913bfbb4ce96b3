import type { IncomingMessage, ServerResponse } from 'node:http'
import { IdempotencyError, type MaybePromise, mountedTwiceError, whenever } from '../core/index.js'
import type { HeaderPairs, RequestEngine, RequestFacts, RequestRun } from '../http/index.js'
import { getContentType, hasMembers, isForm } from '../http/request/facts.js'
import { isBuffered } from './faked.js'
import { BufferedResponse } from './held-response.js'
import type { Replacement, ResponseSender } from './sending/response-sender.js'
import { sendAnswer } from './sending/send.js'

/** The facts about a Node request. `request` is passed to option functions; `body` is a parser's result. */
export class NodeFacts<Req> implements RequestFacts<Req> {
  readonly request: Req
  readonly target: string
  readonly body: unknown
  readonly #req: IncomingMessage
  /** The client's own: while the response is held, `req.socket` may be one that outlives it. */
  readonly #socket: IncomingMessage['socket'] | undefined

  constructor(req: IncomingMessage, request: Req, target: string, body: unknown) {
    this.#req = req
    this.#socket = req.socket
    this.request = request
    this.target = target
    this.body = body
  }

  get method(): string {
    return this.#req.method ?? ''
  }

  get rawHeaders(): readonly string[] {
    return this.#req.rawHeaders ?? NO_LINES
  }

  /**
   * What middleware in front has changed. Adapters without a real connection, for example serverless ones, and test doubles have
   * nothing else: several lines are a list there, or one value.
   */
  get headers(): Readonly<Record<string, unknown>> | undefined {
    return this.#req.headers
  }

  get joinsHeaderLines(): boolean {
    return this.rawHeaders.length === 0
  }

  get bodyWasRead(): boolean {
    return this.#req.readableDidRead || this.#req.readableEnded // An empty body ends without being read.
  }

  /** A form without fields: its parser has read it, or its binding tells. */
  get bodyIsEmpty(): boolean {
    return isEmptyObject(this.body) && isForm(getContentType(this)) && this.bodyWasRead
  }

  /** `null` is no body that a parser leaves alone. It may be JSON's, or what a binding tells where it is in doubt. */
  get bodyFault(): 'nothing_seen' | undefined {
    return this.body === null && this.bodyWasRead && hasMembers(getContentType(this)) ? 'nothing_seen' : undefined
  }

  isAbandoned(): boolean {
    return this.#socket?.destroyed === true
  }
}

const NO_LINES: readonly string[] = []

/**
 * A callback of plain `node:http` without a parameter. Express and Connect set `originalUrl`, and their `next` takes errors, even where
 * something has wrapped it.
 */
export function isWithoutErrorParameter(req: IncomingMessage, next: (error?: unknown) => void): boolean {
  return next.length === 0 && (req as { readonly originalUrl?: unknown }).originalUrl === undefined
}

/** What old body parsers set on a request that they leave alone. */
export function isEmptyObject(body: unknown): boolean {
  if (typeof body !== 'object' || body === null || Array.isArray(body) || body instanceof Uint8Array) return false
  return Object.keys(body).length === 0
}

/**
 * What to take `{}` for, beside bytes that have content: somebody else has read them, unless they are a form, whose parsers leave out
 * fields such as `__proto__`. Nobody can tell then.
 */
export function resolveEmptyBody({ headers }: IncomingMessage): null | undefined {
  return isForm(headers?.['content-type'] ?? '') ? null : undefined
}

export { mayHaveContent } from '../http/request/sent-body.js'

/** Whether a body's text or bytes are more than an empty object or form has. */
export function hasContent(rawBody: unknown): boolean {
  return HAS_CONTENT.test(String(rawBody))
}

const HAS_CONTENT = /[^\s{}&=]/

/** A response of Node, and the request that it answers. */
interface Exchange<Req> {
  readonly req: IncomingMessage
  readonly res: ServerResponse
  /** The request as the framework has it. */
  readonly request: Req
  /** Called if the answer was stored, but could not be sent. */
  readonly onError: (error: unknown) => void
}

/**
 * Holds a response, below the framework, until the run is settled. `null`: somebody else has answered meanwhile, for example a time
 * limit, and the handler must not run. Throws, or rejects with, IdempotencyError `response_begun` or `response_unsupported`. In both cases the
 * handler has not run, and the key is free.
 */
export function bufferResponse<Req>(
  engine: RequestEngine<Req>,
  run: RequestRun,
  extraHeaders: HeaderPairs,
  { req, res, request, onError }: Exchange<Req>,
): MaybePromise<BufferedResponse | null> {
  try {
    if (!hasOtherAnswer(res))
      return new BufferedResponse(
        req,
        res,
        run,
        extraHeaders,
        { sendReplacement: sendOther, destroysStreamOfLeftClient: true },
        onError,
      )
  } catch (error) {
    return whenever(run.failUncalled(), () => {
      throw error
    })
  }
  return whenever(run.failUncalled(), () => null)

  function sendOther({ req, res, extraHeaders, outlet }: ResponseSender, other: Replacement): void {
    sendAnswer(req, res, engine.answerFor(other, request), other.action === 'replay', extraHeaders, outlet)
  }
}

/** @throws IdempotencyError `mounted_twice`: also where another request object of a framework has the same response. */
export function assertNotBuffered(res: ServerResponse): void {
  if (isBuffered(res)) throw mountedTwiceError()
}

/** What a handler sends has failed before its first byte: whatever error page follows, the handler has not refused. */
export function reportErrorAsNonRefusal(run: RequestRun, error: unknown): void {
  run.reportError(error)
  run.willNotRefuse()
}

/**
 * Whether somebody else has answered already.
 *
 * @throws IdempotencyError `response_begun`: that answer has only begun.
 */
export function hasOtherAnswer(res: ServerResponse): boolean {
  if (isResponseInProgress(res)) throw responseBegunError()
  return res.writableEnded
}

/** Whether somebody else has begun an answer and not ended it. */
export function isResponseInProgress({ headersSent, writableEnded }: ServerResponse): boolean {
  return headersSent && !writableEnded
}

/** A response whose head was sent can no longer be held. */
export function responseBegunError(
  middleware = 'idempotency middleware',
  consequence = 'it cannot be stored before it is sent',
): IdempotencyError {
  return new IdempotencyError(
    'response_begun',
    `The response was begun before the ${middleware}, so ${consequence}. Mount middleware that writes to it after the ${middleware}.`,
  )
}
