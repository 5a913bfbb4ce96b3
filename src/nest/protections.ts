import type { HttpAdapterHost } from '@nestjs/core'
import type { FastifyInstance } from 'fastify'
import { IdempotencyError, optionRules } from '../core/index.js'
import { ProtectedAnswers } from '../fastify/protected-answers.js'
import { type Controls, createRequestEngine, type Operator } from '../http/index.js'
import { createExpressProtection, createFastifyProtection, type RouteProtection } from './entries.js'
import { type NestOptions, OWN_OPTIONS, type OwnOptions } from './nest-options.js'

/** For shutdown and operators, on the records of all routes: inject it. */
export class IdempotencyService implements Controls {
  readonly #operator: Operator
  readonly #idle: () => Promise<void>

  /** Called by the module. */
  constructor(operator: Operator, idle: () => Promise<void>) {
    this.#operator = operator
    this.#idle = idle
  }

  /** `inspect` of the middleware. */
  readonly inspect: Operator['inspect'] = (name) => this.#operator.inspect(name)

  /** `unknown` of the middleware. */
  readonly unknown: Operator['unknown'] = () => this.#operator.unknown()

  /** `resolve` of the middleware. */
  readonly resolve: Operator['resolve'] = (name, as) => this.#operator.resolve(name, as)

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
  /** Of the routes without options of their own. */
  #root: RouteProtection | undefined
  /** By controller, then by its handlers: several controllers may inherit one. */
  readonly #entries = new Map<object, Map<object, RouteProtection>>()
  /** On Fastify. */
  #answers: ProtectedAnswers | undefined

  /** @throws IdempotencyError `options_invalid`, which lists every mistake. */
  constructor(options: NestOptions | undefined, host: HttpAdapterHost) {
    if (options === undefined) throw optionsMissingError()
    // Also without routes, as in a standalone application. Mistakes are told when the application starts, whichever routes it has.
    const operator = createRequestEngine(options)
    this.#options = options
    this.#host = host
    this.service = new IdempotencyService(operator, async () => {
      const entries = [...this.#entries.values()].flatMap((ofController) => [...ofController.values()])
      await Promise.all([...new Set(entries)].map((entry) => entry.waitUntilIdle()))
    })
  }

  /** Called before routes are registered: on Fastify, whose hooks apply to later routes. */
  addHooks(): void {
    if (this.#isFastify) this.#answers = getOrCreateAnswers(this.#host.httpAdapter.getInstance())
  }

  get #isFastify(): boolean {
    return this.#host.httpAdapter.getType() === 'fastify'
  }

  getProtection(handler: object, controller: object): RouteProtection {
    const ofController = this.#entries.get(controller) ?? new Map<object, RouteProtection>()
    this.#entries.set(controller, ofController)
    const known = ofController.get(handler)
    if (known !== undefined) return known
    const options = this.resolveRouteOptions(handler, controller)
    const entry = options === this.#options ? this.#getRootProtection() : this.#createProtection(options)
    ofController.set(handler, entry)
    return entry
  }

  /** A route's options; those of the module themselves, where it has none of its own. */
  resolveRouteOptions(handler: object, controller: object): NestOptions {
    const own = { ...readOwnOptions(controller), ...readOwnOptions(handler) }
    return Object.keys(own).length === 0 ? this.#options : { ...this.#options, ...own }
  }

  #getRootProtection(): RouteProtection {
    this.#root ??= this.#createProtection(this.#options)
    return this.#root
  }

  #createProtection(options: NestOptions): RouteProtection {
    return this.#isFastify
      ? createFastifyProtection(options, this.#getFastifyAnswers())
      : createExpressProtection(options)
  }

  #getFastifyAnswers(): ProtectedAnswers {
    if (this.#answers !== undefined) return this.#answers
    throw new IdempotencyError(
      'response_unsupported',
      'IdempotencyModule is not a module of this application: import IdempotencyModule.forRoot(…) in its root module.',
    )
  }
}

/** Several modules of an application have one: its hooks are added once. */
const ANSWERS = new WeakMap<FastifyInstance, ProtectedAnswers>()

function getOrCreateAnswers(app: FastifyInstance): ProtectedAnswers {
  const answers = ANSWERS.get(app) ?? new ProtectedAnswers(app)
  ANSWERS.set(app, answers)
  return answers
}

function optionsMissingError(): IdempotencyError {
  return new IdempotencyError(
    'options_invalid',
    'IdempotencyModule has no options. Import IdempotencyModule.forRoot({ store, scope }), or forRootAsync with a `useFactory` that returns ' +
      'them, in place of IdempotencyModule.',
  )
}

/** Without those that are `undefined`, which count as absent. */
function readOwnOptions(target: object): OwnOptions {
  return optionRules.omitUndefined(Reflect.getMetadata(OWN_OPTIONS, target))
}
