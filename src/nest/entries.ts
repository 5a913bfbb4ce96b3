import type { IncomingMessage, ServerResponse } from 'node:http'
import type { Socket } from 'node:net'
import type { Readable } from 'node:stream'
import type { FastifyReply, FastifyRequest } from 'fastify'
import { type Answer, isCertainFailure } from '../core/index.js'
import { protectionBy, reportCertainFailure } from '../express/middleware.js'
import type { ProtectedAnswers } from '../fastify/protected-answers.js'
import { type Controls, controlsOf, createRequestEngine, type RequestEngine } from '../http/index.js'
import type { NestOptions } from './nest-options.js'

/** What was sent in place of the handler's answer. */
export interface Answered {
  readonly answer: Answer
  readonly isReplay: boolean
}

/** A request as an interceptor gets it, of either platform. */
export interface Call {
  // biome-ignore lint/suspicious/noExplicitAny: of either platform
  readonly request: any
  // biome-ignore lint/suspicious/noExplicitAny: of either platform
  readonly response: any
  /** Of Express. */
  readonly next: (error?: unknown) => void
  /** The client's connection: a held response shows another one. */
  readonly client: Socket
}

/** The protection of a route, on the platform of its application. */
export interface Entry {
  /**
   * `null`: the handler must run. Rejects with misuse. `own`: the names of the route's `@Header()`s, which Nest has set before; they
   * belong to the handler's answer, and not to a refusal.
   */
  claim(call: Call, own: readonly string[]): Promise<Answered | null>
  /** The handler has thrown. */
  failed(call: Call, error: unknown): void
  /** The handler has returned a `StreamableFile`. */
  sends(call: Call, stream: Readable): void
  readonly controls: Controls
}

/** Each request is claimed once: controllers and methods both add the interceptor, and those around it may call it again. */
const CLAIMS = new WeakMap<object, Promise<Answered | null>>()

function claimOnce(request: object, claim: () => Promise<Answered | null>): Promise<Answered | null> {
  const claimed = CLAIMS.get(request) ?? claim()
  CLAIMS.set(request, claimed)
  return claimed
}

export function expressEntry(options: NestOptions): Entry {
  const engine = createRequestEngine(options) as unknown as RequestEngine<IncomingMessage>
  const protect = protectionBy(engine)
  return {
    controls: controlsOf(engine),
    claim: ({ request, response, next }, own) =>
      claimOnce(request, () => {
        const putBack = takeHeaders(response, own, (name, value) => response.setHeader(name, value))
        return withoutRun(claimed(request, response, next), putBack)
      }),
    failed: ({ request }, error) => reportCertainFailure(request, isCertainFailure(error)),
    sends({ request, response, client }, stream) {
      if (request.idempotency !== undefined) outliveClient({ stream, response, client, isPiped: true })
    },
  }

  function claimed(request: IncomingMessage, response: ServerResponse, next: Call['next']): Promise<Answered | null> {
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
        silence(response)
        resolve({ answer, isReplay })
      })
    })
  }
}

export function fastifyEntry(options: NestOptions, answers: ProtectedAnswers): Entry {
  const engine = createRequestEngine(options) as unknown as RequestEngine<FastifyRequest>
  return {
    controls: controlsOf(engine),
    claim: ({ request, response }, own) => claimOnce(request, () => claimed(request, response, own)),
    failed: ({ request }, error) => answers.failed(request, error),
    sends({ request, response, client }, stream) {
      if (request.idempotency !== undefined) outliveClient({ stream, response: response.raw, client, isPiped: false })
    },
  }

  async function claimed(
    request: FastifyRequest,
    response: FastifyReply,
    own: readonly string[],
  ): Promise<Answered | null> {
    const putBack = takeHeaders(response, own, (name, value) => response.header(name, value))
    const answered = await withoutRun(answers.claim(engine, request, response), putBack)
    if (answered === null) return null
    // Fastify sends in steps, through the application's hooks: until then the reply must stay as it is.
    await sent(response)
    silence(response.raw)
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

async function withoutRun(claim: Promise<Answered | null>, putBack: () => void): Promise<Answered | null> {
  let answered: Answered | null = null
  try {
    answered = await claim
    return answered
  } finally {
    if (answered === null) putBack()
  }
}

/** Also where its client has left before. */
function sent({ raw }: FastifyReply): Promise<void> {
  return new Promise((resolve) => {
    if (raw.destroyed || raw.writableFinished) resolve()
    else raw.once('finish', resolve).once('close', resolve)
  })
}

/**
 * After a replay or a refusal was sent, Nest goes on as for any request: it sends what the interceptors return, or a filter answers an
 * exception. On a response that has ended that throws; here it does nothing.
 */
function silence(response: ServerResponse): void {
  Object.assign(response, SILENT)
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

/** A response of the run whose handler returned a `StreamableFile`. */
interface Sending {
  readonly stream: Readable
  readonly response: ServerResponse
  /** The client's connection: a held response shows another one, which outlives it. */
  readonly client: Socket
  /** The platform pipes the stream, and does not look at how it ends. */
  readonly isPiped: boolean
}

/**
 * A stream is read to its end though its client has left, so that a retry is told of the result. Nest destroys the stream then. Only
 * an event stream ends with its client. A piped stream that breaks takes the response with it: otherwise its first half would pass for
 * an answer.
 */
function outliveClient({ stream, response, client, isPiped }: Sending): void {
  const { destroy } = stream
  stream.destroy = function (this: Readable, error?: Error): Readable {
    if (error === undefined && client.destroyed && !isEventStream(response)) return this
    return destroy.call(this, error)
  }
  if (!isPiped) return
  stream.once('error', (error) => {
    if (response.headersSent) response.destroy(error)
  })
  stream.once('close', () => {
    if (!stream.readableEnded && !stream.errored) response.destroy()
  })
}

function isEventStream(response: ServerResponse): boolean {
  return String(response.getHeader('content-type')).startsWith('text/event-stream')
}
