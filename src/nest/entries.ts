import type { IncomingMessage, ServerResponse } from 'node:http'
import type { Readable } from 'node:stream'
import type { FastifyReply, FastifyRequest } from 'fastify'
import type { MaybePromise } from '../core/index.js'
import { createProtection, forgetError, reportError, ruleOutRequestRefusal } from '../express/middleware.js'
import type { ProtectedAnswers, SentAnswer } from '../fastify/protected-answers.js'
import { createRequestEngine, type RequestEngine } from '../http/index.js'
import { hideDisconnect } from '../node/faked.js'
import type { NestOptions } from './nest-options.js'

/** A request as an interceptor gets it, of either platform. */
export interface NestCall {
  // biome-ignore lint/suspicious/noExplicitAny: of either platform
  readonly request: any
  // biome-ignore lint/suspicious/noExplicitAny: of either platform
  readonly response: any
  /** Of Express. */
  readonly next: (error?: unknown) => void
}

/** The protection of a route, on the platform of its application. */
export interface RouteProtection {
  /**
   * `null`: the handler must run. Rejects with misuse. `own`: the names of the route's `@Header()`s, which Nest has set before; they
   * belong to the handler's answer, and not to a refusal.
   */
  claim(call: NestCall, own: readonly string[]): Promise<SentAnswer | null>
  /** The handler is called; again, where an interceptor around tries once more after a failure. */
  onHandlerCalled(call: NestCall): void
  onError(call: NestCall, error: unknown): void
  /** The handler has returned a `StreamableFile`. */
  onStreamReturned(call: NestCall, source: Readable): void
  waitUntilIdle(): Promise<void>
}

/** Each request is claimed once: controllers and methods both add the interceptor, and those around it may call it again. */
const CLAIMS = new WeakMap<object, Promise<SentAnswer | null>>()

function claimOnce(request: object, claim: () => Promise<SentAnswer | null>): Promise<SentAnswer | null> {
  const claimRequest = CLAIMS.get(request) ?? claim()
  CLAIMS.set(request, claimRequest)
  return claimRequest
}

export function createExpressProtection(options: NestOptions): RouteProtection {
  const engine = createRequestEngine(options) as unknown as RequestEngine<IncomingMessage>
  const protect = createProtection(engine)
  return {
    waitUntilIdle: () => engine.idle(),
    claim: ({ request, response, next }, own) =>
      claimOnce(request, async () => {
        const putBack = takeHeaders(response, own, (name, value) => response.setHeader(name, value))
        const answered = await claimOrRestoreHeaders(() => claimed(request, response, next), putBack)
        if (request.idempotency === undefined) return answered
        hideDisconnect(response)
        response.on('pipe', (source: Readable) => destroyWithSource(source, request, response))
        response.once('close', () => response.end()) // Of events: Nest stops their source, which does not end then.
        return answered
      }),
    onHandlerCalled: ({ request }) => forgetError(request),
    onError: ({ request }, error) => reportError(request, error),
    onStreamReturned({ request, response }, source) {
      // Nest may pipe it through another stream, which does not tell that it has closed.
      if (request.idempotency !== undefined) destroyWithSource(source, request, response)
    },
  }

  function claimed(
    request: IncomingMessage,
    response: ServerResponse,
    next: NestCall['next'],
  ): Promise<SentAnswer | null> {
    let isDecided = false
    return new Promise((resolve, reject) => {
      const goOn = (error?: unknown): void => {
        if (isDecided)
          next(error) // An answer that was stored cannot be sent.
        else if (error === undefined) resolve(null)
        else reject(error)
        isDecided = true
      }
      protect(request, response, goOn, (answer, isReplay) => {
        isDecided = true
        ignoreFurtherWrites(response)
        resolve({ answer, isReplay })
      })
    })
  }
}

export function createFastifyProtection(options: NestOptions, answers: ProtectedAnswers): RouteProtection {
  const engine = createRequestEngine(options) as unknown as RequestEngine<FastifyRequest>
  return {
    waitUntilIdle: () => engine.idle(),
    claim: ({ request, response }, own) => claimOnce(request, () => claimed(request, response, own)),
    onHandlerCalled: ({ request }) => answers.onHandlerCalled(request),
    onError: ({ request }, error) => answers.onError(request, error),
    onStreamReturned() {}, // Fastify looks at how it ends.
  }

  async function claimed(
    request: FastifyRequest,
    response: FastifyReply,
    own: readonly string[],
  ): Promise<SentAnswer | null> {
    const putBack = takeHeaders(response, own, (name, value) => response.header(name, value))
    const answered = await claimOrRestoreHeaders(() => answers.claim(engine, request, response), putBack)
    if (answered === null) {
      hideDisconnect(response.raw)
      return null
    }
    // Fastify sends in steps, through the application's hooks: until then the reply must stay as it is.
    await waitUntilSent(response)
    ignoreFurtherWrites(response.raw)
    response.send = () => response
    return answered
  }
}

type HeaderValue = number | string | string[] | undefined

/** Returns what puts them back. */
function takeHeaders(
  from: { getHeader(name: string): HeaderValue; removeHeader(name: string): unknown },
  names: readonly string[],
  set: (name: string, value: HeaderValue) => unknown,
): () => void {
  const taken = names.map((name) => [name, from.getHeader(name)] as const)
  for (const name of names) from.removeHeader(name)
  return () => {
    for (const [name, value] of taken) if (value !== undefined) set(name, value)
  }
}

async function claimOrRestoreHeaders(
  claim: () => MaybePromise<SentAnswer | null>,
  putBack: () => void,
): Promise<SentAnswer | null> {
  let answered: SentAnswer | null = null
  try {
    answered = await claim()
    return answered
  } finally {
    if (answered === null) putBack()
  }
}

/** Also where its client has left before. */
function waitUntilSent({ raw }: FastifyReply): Promise<void> {
  return new Promise((resolve) => {
    if (raw.destroyed || raw.writableFinished) resolve()
    else raw.once('finish', resolve).once('close', resolve)
  })
}

/**
 * After a replay or a refusal was sent, Nest goes on as for any request: it sends what the interceptors return, or a filter answers an
 * exception. On a response that has ended that throws; here it does nothing.
 */
function ignoreFurtherWrites(response: ServerResponse): void {
  Object.assign(response, SILENT)
  const { statusCode } = response
  Object.defineProperty(response, 'statusCode', { get: () => statusCode, set() {} }) // Of what was sent, for access logs.
}

function ignore<This>(this: This): This {
  return this
}

const SILENT = {
  setHeader: ignore,
  setHeaders: ignore,
  appendHeader: ignore,
  removeHeader: ignore,
  writeHead: ignore,
  flushHeaders: ignore,
  write: () => true,
  end: ignore,
  /** Of Express: a view need not be made. */
  render: ignore,
}

/**
 * A stream that breaks takes the response with it, before Nest ends that: its first half would pass for an answer. One that breaks before
 * its first byte, or has broken before, Nest answers with 400, which would pass for the handler's refusal.
 */
function destroyWithSource(source: Readable, request: IncomingMessage, response: ServerResponse): void {
  if (response.statusCode < 400) ruleOutRequestRefusal(request)
  source.prependOnceListener('error', (error) => {
    if (response.headersSent) response.destroy(error)
  })
  source.once('close', () => {
    if (!source.readableEnded && !source.errored) response.destroy()
  })
}
