import type { DynamicModule, ExecutionContext, NestModule, OnApplicationShutdown } from '@nestjs/common'
import * as nest from '@nestjs/common'
import { HttpAdapterHost, ModulesContainer } from '@nestjs/core'
import * as rxjs from 'rxjs'
import { type IdempotencyContext, IdempotencyError } from '../core/index.js'
import { ControllerInterceptor, IdempotencyInterceptor } from './interceptor.js'
import { isMarked, markMethodProtected, type NestOptions, OWN_OPTIONS, type OwnOptions } from './nest-options.js'
import { IdempotencyService, Protections } from './protections.js'
import { StartCheck } from './start-check.js'

assertVersion('Nest 9', '@nestjs/common', nest.ConfigurableModuleBuilder)
assertVersion('RxJS 7.2', 'rxjs', rxjs.tap)

/** `needed`: what versions before `least` do not export. */
function assertVersion(least: string, name: string, needed: unknown): void {
  if (needed !== undefined) return
  throw new IdempotencyError(
    'options_invalid',
    `once-per-key/nest needs ${least} or later, and found an older ${name}: npm install ${name}@latest, with the other packages of Nest.`,
  )
}

const { ConfigurableModuleClass, MODULE_OPTIONS_TOKEN } = new nest.ConfigurableModuleBuilder<NestOptions>()
  .setClassMethodName('forRoot')
  .setExtras({ isGlobal: true }, (definition: DynamicModule, { isGlobal }) => ({ ...definition, global: isGlobal }))
  .build()

/**
 * Idempotency for the routes that `@Idempotent()` marks, on Nest's platforms Express and Fastify. Global: import it once, with `forRoot`
 * or, where its options are injected, `forRootAsync({ inject, useFactory })`. When the application closes, it waits until its runs and
 * pending completions have ended; close the store's client afterwards.
 *
 * @example
 * @Module({
 *   imports: [IdempotencyModule.forRoot({ store: new MemoryStore(), scope: (request) => request.user.merchantId })],
 * })
 * class AppModule {}
 *
 * @throws IdempotencyError `options_invalid`, which lists every mistake, when the application is created; and when it starts, for options of
 * routes, and for decorators that protect nothing, such as one on a resolver of GraphQL.
 */
export class IdempotencyModule extends ConfigurableModuleClass implements NestModule, OnApplicationShutdown {
  readonly #protections: Protections

  /** Called by Nest. */
  constructor(protections: object) {
    super()
    this.#protections = protections as Protections
  }

  /** Nest calls it before it registers routes. */
  configure(): void {
    if (!(#protections in this)) throw requestScopedOptionsError() // Nest has not made it, and will for each request.
    this.#protections.addHooks()
  }

  /** Nest calls it after the server was closed. */
  async onApplicationShutdown(): Promise<void> {
    await this.#protections.service.idle()
  }
}

function requestScopedOptionsError(): IdempotencyError {
  return new IdempotencyError(
    'options_invalid',
    'The options of IdempotencyModule.forRootAsync depend on a provider that is made for each request, and so would its store be. ' +
      'Inject providers of the application, and take from the request in `scope: (request) => …` and the like.',
  )
}

// As decorators do, which the language has not had in this form.
nest.Module({
  providers: [
    {
      provide: Protections,
      inject: [{ token: MODULE_OPTIONS_TOKEN, optional: true }, HttpAdapterHost],
      useFactory: (options: NestOptions | undefined, host: HttpAdapterHost) => new Protections(options, host),
    },
    {
      provide: StartCheck,
      inject: [ModulesContainer, Protections],
      useFactory: (modules: ModulesContainer, protections: Protections) =>
        new StartCheck(modules, protections, getOperationContext),
    },
    { provide: IdempotencyService, inject: [Protections], useFactory: ({ service }: Protections) => service },
  ],
  exports: [Protections, IdempotencyService],
})(IdempotencyModule)
nest.Inject(Protections)(IdempotencyModule, undefined, 0)

/**
 * Protects a route, or all routes of a controller: a request that is retried with its `Idempotency-Key` gets the answer of the first
 * one, and the handler does not run again. The claim comes after guards and before pipes and the handler, so `scope` sees what guards
 * have set, and a replay has passed them. `options` are this route's own: each replaces that of the controller, and of
 * `IdempotencyModule.forRoot`.
 *
 * @example
 * @Post()
 * @Idempotent({ required: true })
 * create(@Body() body: CreatePayout, @Operation() operation: IdempotencyContext) {
 *   return this.bank.transfer(body.amount, operation.deriveKey('transfer'))
 * }
 */
export function Idempotent(options: OwnOptions = {}): ClassDecorator & MethodDecorator {
  return (target: object, name?: string | symbol, descriptor?: PropertyDescriptor) => {
    const interceptor = name === undefined ? ControllerInterceptor : IdempotencyInterceptor
    const decorators = [nest.SetMetadata(OWN_OPTIONS, options), nest.UseInterceptors(interceptor), markMethodProtected]
    nest.applyDecorators(...decorators)(target, name, descriptor)
  }
}

/**
 * The context of the handler's run, as a parameter: its key, attempt and `deriveKey`; `undefined` for a request without a key, which
 * `required: true` refuses. A route that nothing protects is told when the application starts.
 */
export const Operation: () => ParameterDecorator = nest.createParamDecorator(getOperationContext)

function getOperationContext(_data: unknown, context: ExecutionContext): IdempotencyContext | undefined {
  const { idempotency } = context.switchToHttp().getRequest<{ idempotency?: IdempotencyContext }>()
  if (idempotency !== undefined || isMarked(context.getHandler(), context.getClass())) return idempotency
  throw routeUnprotectedError(context.getClass().name, context.getHandler().name)
}

function routeUnprotectedError(controller: string, handler: string): IdempotencyError {
  return new IdempotencyError(
    'context_missing',
    `${controller}.${handler} takes @Operation(), but nothing protects it: mark the method, or its controller, with @Idempotent().`,
  )
}
