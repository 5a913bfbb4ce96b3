import type { IncomingMessage, ServerResponse } from 'node:http'
import type { HttpAdapterHost } from '@nestjs/core'
import type { FastifyInstance, FastifyReply, FastifyRequest } from 'fastify'
import { IdempotencyError, isCertainFailure } from '../core/index.js'
import { idempotency, reportCertainFailure } from '../express/middleware.js'
import { ProtectedAnswers } from '../fastify/protected-answers.js'
import {
  type Controls,
  controlsOf,
  createRequestEngine,
  type IdempotencyOptions,
  type Operator,
  type RequestEngine,
} from '../http/index.js'

/** The request of either platform, with what guards have set. */
export interface NestRequest {
  readonly headers: Readonly<Record<string, string | readonly string[] | undefined>>
  // biome-ignore lint/suspicious/noExplicitAny: guards and parsers set what they like
  readonly [name: string]: any
}

/** The options of `IdempotencyModule.forRoot`: those of `idempotency`, whose functions get Nest's request after its guards. */
export type NestOptions = IdempotencyOptions<NestRequest>

/** The options of one route or controller. */
export type OwnOptions = Partial<NestOptions>

/** The metadata with a route's or a controller's own options. */
export const OWN_OPTIONS = 'once-per-key: options'

/** The protection of a route. */
interface Entry {
  /** Resolves with whether the handler must run; if not, the response was sent in its place. Rejects with misuse. */
  claim(request: object, response: object): Promise<boolean>
  /** The handler has thrown. */
  failed(request: object, error: unknown): void
  readonly controls: Controls
}

/** For shutdown and operators, on the records of all routes: inject it. */
export class IdempotencyService implements Operator {
  readonly #controls: () => Controls
  readonly #idle: () => Promise<void>

  constructor(controls: () => Controls, idle: () => Promise<void>) {
    this.#controls = controls
    this.#idle = idle
  }

  /** `inspect` of the middleware. */
  readonly inspect: Operator['inspect'] = (name) => this.#controls().inspect(name)

  /** `unknown` of the middleware. */
  readonly unknown: Operator['unknown'] = () => this.#controls().unknown()

  /** `resolve` of the middleware. */
  readonly resolve: Operator['resolve'] = (name, as) => this.#controls().resolve(name, as)

  /** Resolves when no run is active and no completion is pending, of any route. The module calls it when the application closes. */
  idle(): Promise<void> {
    return this.#idle()
  }
}

/** The protections of an application's routes: one for each set of options. */
export class Protections {
  readonly service: IdempotencyService
  readonly #options: NestOptions
  readonly #host: HttpAdapterHost
  readonly #root: Entry[] = []
  readonly #entries = new Map<object, Entry>()
  /** On Fastify. */
  #answers: ProtectedAnswers | undefined

  /** @throws IdempotencyError `options_invalid`, which lists every mistake. */
  constructor(options: NestOptions, host: HttpAdapterHost) {
    createRequestEngine(options) // Mistakes are told when the application starts, whichever routes it has.
    this.#options = options
    this.#host = host
    this.service = new IdempotencyService(
      () => this.#rootEntry().controls,
      async () => {
        await Promise.all(
          [...new Set([...this.#root, ...this.#entries.values()])].map(({ controls }) => controls.idle()),
        )
      },
    )
  }

  /** Called before routes are registered: on Fastify, whose hooks apply to later routes. */
  attach(): void {
    if (this.#isFastify) this.#answers ??= new ProtectedAnswers(this.#host.httpAdapter.getInstance<FastifyInstance>())
  }

  get #isFastify(): boolean {
    return this.#host.httpAdapter.getType() === 'fastify'
  }

  entryOf(handler: object, controller: object): Entry {
    const known = this.#entries.get(handler)
    if (known !== undefined) return known
    const own = { ...ownOptionsOf(controller), ...ownOptionsOf(handler) }
    const entry = Object.keys(own).length === 0 ? this.#rootEntry() : this.#made({ ...this.#options, ...own })
    this.#entries.set(handler, entry)
    return entry
  }

  #rootEntry(): Entry {
    const [entry = this.#made(this.#options)] = this.#root
    this.#root[0] = entry
    return entry
  }

  #made(options: NestOptions): Entry {
    return this.#isFastify ? fastifyEntry(options, this.#attached()) : expressEntry(options)
  }

  #attached(): ProtectedAnswers {
    if (this.#answers !== undefined) return this.#answers
    throw new IdempotencyError(
      'response_unsupported',
      'IdempotencyModule is not a module of this application: import IdempotencyModule.forRoot(…) in its root module.',
    )
  }
}

function ownOptionsOf(target: object): OwnOptions {
  return Reflect.getMetadata(OWN_OPTIONS, target) ?? {}
}

/** Requests that have passed: the decorator of a controller and that of its method both add the interceptor. */
const ENTERED = new WeakSet<object>()

function expressEntry(options: NestOptions): Entry {
  const once = idempotency(options as unknown as IdempotencyOptions<IncomingMessage>)
  return {
    controls: once,
    claim: (request, response) =>
      new Promise((resolve, reject) => {
        if (ENTERED.has(request)) return resolve(true)
        ENTERED.add(request)
        once(request as IncomingMessage, response as ServerResponse, (error) =>
          error === undefined ? resolve(true) : reject(error),
        )
      }),
    failed: (request, error) => {
      if (isCertainFailure(error)) reportCertainFailure(request as IncomingMessage, true)
    },
  }
}

function fastifyEntry(options: NestOptions, answers: ProtectedAnswers): Entry {
  const engine = createRequestEngine(options) as unknown as RequestEngine<FastifyRequest>
  return {
    controls: controlsOf(engine),
    async claim(request, response) {
      if (ENTERED.has(request)) return true
      ENTERED.add(request)
      return answers.claim(engine, request as FastifyRequest, response as FastifyReply)
    },
    failed: (request, error) => answers.failed(request as FastifyRequest, error),
  }
}
