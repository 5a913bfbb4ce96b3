import { type OnModuleInit, RequestMethod } from '@nestjs/common'
import { MetadataScanner, type ModulesContainer } from '@nestjs/core'
import { findMistakes, IdempotencyError, optionRules } from '../core/index.js'
import { listCoveredMethods, requestOptions } from '../http/index.js'
import { ControllerInterceptor, IdempotencyInterceptor } from './interceptor.js'
import { hasLostMark, isMarked } from './nest-options.js'
import type { Protections } from './protections.js'

/** Nest's names for what decorators say of a class or a method. */
const CONTROLLER = '__controller__'
const ROUTE = 'path'
const METHOD = 'method'
const PARAMETERS = '__routeArguments__'
/** Of `@nestjs/microservices`. */
const MESSAGE = 'microservices:pattern'

const USE_RUNNER =
  '@Idempotent() protects routes of controllers, whose response can be held until it is stored; here use `runner` of once-per-key/run, inside of it'

/** RFC 9110 §9.2.1: a mark on what only reads is harmless, like the middleware in front of it. */
const SAFE = ['GET', 'HEAD', 'OPTIONS', 'SEARCH']

interface HandlerMethod {
  readonly type: Class
  readonly name: string
  readonly handler: object
}

type Class = abstract new (...args: never[]) => object

/**
 * Says when the application starts what would be told at the first request, or never: `@Idempotent()` where it protects nothing, a
 * route's options, `@Operation()` without it.
 */
export class StartCheck implements OnModuleInit {
  readonly #modules: ModulesContainer
  readonly #protections: Protections
  readonly #operation: unknown

  /** `operation`: what `@Operation()` is made of. */
  constructor(modules: ModulesContainer, protections: Protections, operation: unknown) {
    this.#modules = modules
    this.#protections = protections
    this.#operation = operation
  }

  /** @throws IdempotencyError `options_invalid`, which lists every mistake. */
  onModuleInit(): void {
    const mistakes = [...new Set(this.#findMistakes())]
    if (mistakes.length === 0) return
    throw new IdempotencyError(
      'options_invalid',
      `@Idempotent() and @Operation() do not protect what they mark:${optionRules.toBulletList(mistakes)}`,
    )
  }

  *#findMistakes(): Generator<string> {
    const globals = [...this.#modules.values()].filter((each) => each.isGlobal && each.providers.has(StartCheck))
    if (globals.length > 1)
      yield 'IdempotencyModule is global, and imported more than once: one of them would win. Import it once, or give each `isGlobal: false`'
    for (const { controllers, providers, injectables } of this.#modules.values()) {
      const interceptor = injectables.get(ControllerInterceptor) ?? injectables.get(IdempotencyInterceptor)
      const { protections } = (interceptor?.instance ?? {}) as Partial<IdempotencyInterceptor>
      for (const place of listHandlerMethods(controllers)) {
        if (hasLostMark(place.type.prototype, place.name)) yield describeLostMark(place)
        else if (!isMarked(place.handler, place.type)) yield* this.#findUnmarkedMistakes(place)
        else if (!Reflect.hasMetadata(ROUTE, place.handler)) yield* findNonRouteMistakes(place)
        else if (protections === this.#protections) yield* this.#findRouteMistakes(place)
      }
      for (const place of listHandlerMethods(providers)) yield* this.#findProviderMistakes(place)
    }
  }

  *#findUnmarkedMistakes(place: HandlerMethod): Generator<string> {
    if (!this.#hasOperationParameter(place)) return
    yield `${formatHandlerName(place)}: it takes @Operation(), but nothing protects it. Mark the method, or its controller, with @Idempotent()`
  }

  #hasOperationParameter({ type, name }: HandlerMethod): boolean {
    const parameters: Record<string, { factory?: unknown }> = Reflect.getMetadata(PARAMETERS, type, name) ?? {}
    return Object.values(parameters).some(({ factory }) => factory === this.#operation)
  }

  *#findRouteMistakes(place: HandlerMethod): Generator<string> {
    const options = this.#protections.resolveRouteOptions(place.handler, place.type)
    const mistakes = findMistakes(options, requestOptions)
    for (const mistake of mistakes) yield `${formatHandlerName(place)}: ${mistake}`
    if (mistakes.length > 0 || !isMarked(place.handler)) return // A marked controller may have other routes.
    const method = RequestMethod[Reflect.getMetadata(METHOD, place.handler)] ?? ''
    const covered = listCoveredMethods(options)
    if (method === 'ALL' || SAFE.includes(method) || covered.includes(method)) return
    yield `${formatHandlerName(place)}: @Idempotent() has no effect on ${method}: \`methods\` are ${covered.join(', ')}. Remove it, or name the method in \`methods\``
  }

  *#findProviderMistakes(place: HandlerMethod): Generator<string> {
    if (Reflect.hasMetadata(CONTROLLER, place.type)) return // What is said of it is said above.
    if (!isMarked(place.handler, place.type) && !this.#hasOperationParameter(place)) return
    yield `${isMarked(place.type) ? place.type.name : formatHandlerName(place)}: it is no controller's. ${USE_RUNNER}`
  }
}

function describeLostMark(place: HandlerMethod): string {
  return (
    `${formatHandlerName(place)}: another decorator has replaced the method, and dropped what @Idempotent() had said of it. Move @Idempotent() above ` +
    'that one'
  )
}

function* findNonRouteMistakes(place: HandlerMethod): Generator<string> {
  if (Reflect.hasMetadata(MESSAGE, place.handler))
    yield `${formatHandlerName(place)}: it is called by messages. ${USE_RUNNER}`
  else if (isMarked(place.handler))
    yield `${formatHandlerName(place)}: it is no route; @Post() and the like make one. ${USE_RUNNER}`
}

function* listHandlerMethods(wrappers: ReadonlyMap<unknown, { readonly metatype: unknown }>): Generator<HandlerMethod> {
  for (const { metatype } of wrappers.values()) {
    if (typeof metatype !== 'function' || !metatype.prototype) continue // A value, or what a factory makes.
    const type = metatype as Class
    for (const name of new MetadataScanner().getAllMethodNames(type.prototype)) {
      yield { type, name, handler: type.prototype[name] }
    }
  }
}

function formatHandlerName({ type, name }: HandlerMethod): string {
  return `${type.name}.${name}`
}
