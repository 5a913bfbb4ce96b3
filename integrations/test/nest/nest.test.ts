import 'reflect-metadata'
import { Readable } from 'node:stream'
import {
  Body,
  type CallHandler,
  type CanActivate,
  Catch,
  Controller,
  type ExceptionFilter,
  type ExecutionContext,
  Header,
  HttpCode,
  type INestApplication,
  Module,
  type NestInterceptor,
  Post,
  Req,
  Res,
  StreamableFile,
  VersioningType,
} from '@nestjs/common'
import { MemoryStore } from 'once-per-key/memory'
import {
  CertainFailure,
  type IdempotencyContext,
  IdempotencyModule,
  IdempotencyService,
  Idempotent,
  type NestOptions,
  Operation,
  singleTenant,
} from 'once-per-key/nest'
import { map } from 'rxjs'
import { describe, expect, test } from 'vitest'
import { gate } from '../../../test/support/gate.js'
import { PLATFORMS, type Platform, startNest } from './start-nest.js'

type Handler = (context: IdempotencyContext | undefined, request: never, response: never, body: never) => unknown

/** A route as decorators make it, which take another form in this project's own configuration. */
interface Route {
  readonly handler: Handler
  readonly own?: Partial<NestOptions>
  readonly decorators?: readonly MethodDecorator[]
  /** The handler gets the response, and Nest sends nothing itself. */
  readonly takesResponse?: boolean
}

function moduleWith(
  routes: Readonly<Record<string, Route>>,
  options: Partial<NestOptions> = {},
  ofController: readonly ClassDecorator[] = [],
) {
  class Routes {}
  for (const [name, { handler, own, decorators = [], takesResponse = false }] of Object.entries(routes)) {
    const method = (context: never, request: never, body: never, response: never) =>
      handler(context, request, response, body)
    Object.defineProperty(Routes.prototype, name, { value: method, configurable: true, writable: true })
    const descriptor = Object.getOwnPropertyDescriptor(Routes.prototype, name) as PropertyDescriptor
    for (const decorate of [Post(name), ...(own === undefined ? [] : [Idempotent(own)]), ...decorators]) {
      decorate(Routes.prototype, name, descriptor)
    }
    Object.defineProperty(Routes.prototype, name, descriptor)
    if (own !== undefined || ofController.length > 0) Operation()(Routes.prototype, name, 0)
    Req()(Routes.prototype, name, 1)
    Body()(Routes.prototype, name, 2)
    if (takesResponse) Res()(Routes.prototype, name, 3)
  }
  for (const decorate of [...ofController, Controller({ path: 'x', version: '1' })]) decorate(Routes)
  class AppModule {}
  Module({
    imports: [IdempotencyModule.forRoot({ store: new MemoryStore(), scope: singleTenant, ...options })],
    controllers: [Routes],
  })(AppModule)
  return AppModule
}

const KEY = { 'Idempotency-Key': 'k' }

describe.each(PLATFORMS)('on %s', (platform) => {
  const start = (
    routes: Readonly<Record<string, Route>>,
    options?: Partial<NestOptions>,
    prepare?: (app: INestApplication) => void,
    ofController?: readonly ClassDecorator[],
  ) => startNest(platform as Platform, moduleWith(routes, options, ofController), prepare)

  test('a route without the decorator, and a request without a key, pass', async () => {
    let runs = 0
    const { post } = await start({ free: { handler: () => ++runs }, once: { handler: () => ++runs, own: {} } })
    for (const path of ['/x/free', '/x/free', '/x/once', '/x/once']) {
      await post(path, {}, path === '/x/free' ? KEY : {})
    }
    expect(runs).toBe(4)
  })

  test('its own options replace those of the controller, and these the module’s', async () => {
    const { post } = await start(
      { own: { handler: () => 1, own: { required: false } }, controllers: { handler: () => 1 } },
      { required: false },
      undefined,
      [Idempotent({ required: true })],
    )
    expect(await post('/x/own', {})).toMatchObject({ status: 201 })
    expect(await post('/x/controllers', {})).toMatchObject({ status: 400, json: { code: 'key_missing' } })
    expect(await post('/x/controllers', {}, KEY)).toMatchObject({ status: 201, replayed: false })
    expect(await post('/x/controllers', {}, KEY)).toMatchObject({ status: 201, replayed: true })
  })

  test('the scope sees what a guard has set, and a replay passes the guard', async () => {
    let checks = 0
    const guard: CanActivate = {
      canActivate(context: ExecutionContext) {
        checks++
        context.switchToHttp().getRequest().user = { id: 'acme' }
        return true
      },
    }
    const { app, post } = await start(
      { pay: { handler: (context) => context?.scope, own: {} } },
      { scope: (request) => request.user?.id },
      (app) => app.useGlobalGuards(guard),
    )
    expect(await post('/x/pay', {}, KEY)).toMatchObject({ text: 'acme', replayed: false })
    expect(await post('/x/pay', {}, KEY)).toMatchObject({ text: 'acme', replayed: true })
    expect(checks).toBe(2)
    expect(await app.get(IdempotencyService).inspect({ scope: 'acme', key: 'k' })).toMatchObject({ state: 'completed' })
  })

  test.each([
    ['a status and headers', { handler: () => ({ a: 1 }), decorators: [HttpCode(202), Header('X-Own', 'yes')] }],
    ['text', { handler: () => 'paid' }],
    ['nothing', { handler: () => undefined, decorators: [HttpCode(204)] }],
    ['a stream', { handler: () => new StreamableFile(Readable.from([Buffer.from('a'), Buffer.from('b')])) }],
    [
      'the response by itself',
      {
        takesResponse: true,
        handler: (
          _context: unknown,
          _request: never,
          response: { status(code: number): { send(body: object): void } },
        ) => response.status(207).send({ by: 'itself' }),
      } as unknown as Route,
    ],
  ] as [string, Route][])('an answer of %s is replayed as it was', async (_name, route) => {
    const { post } = await start({ pay: { ...route, own: {} } })
    const first = await post('/x/pay', {}, KEY)
    const replay = await post('/x/pay', {}, KEY)
    expect(replay).toEqual({ ...first, replayed: true })
    expect(replay.headers.get('X-Own')).toBe(first.headers.get('X-Own'))
  })

  test('an interceptor around maps the answer that is stored; a filter answers an error, which is judged', async () => {
    const wrap: NestInterceptor = {
      intercept: (_context: ExecutionContext, next: CallHandler) => next.handle().pipe(map((data) => ({ data }))),
    }
    class Teapot implements ExceptionFilter {
      catch(
        _error: unknown,
        host: { switchToHttp(): { getResponse(): { status(code: number): { send(body: object): void } } } },
      ) {
        host.switchToHttp().getResponse().status(418).send({ tea: true })
      }
    }
    Catch()(Teapot)
    let runs = 0
    const { post } = await start(
      {
        pay: { handler: () => ({ run: ++runs }), own: {} },
        fail: {
          handler: () => {
            runs++
            throw new Error('no')
          },
          own: {},
        },
      },
      {},
      (app) => {
        app.useGlobalInterceptors(wrap)
        app.useGlobalFilters(new Teapot())
      },
    )
    expect(await post('/x/pay', {}, KEY)).toMatchObject({ json: { data: { run: 1 } }, replayed: false })
    expect(await post('/x/pay', {}, KEY)).toMatchObject({ json: { data: { run: 1 } }, replayed: true })
    expect(await post('/x/fail', {}, { 'Idempotency-Key': 'f' })).toMatchObject({ status: 418, json: { tea: true } })
    expect(await post('/x/fail', { other: 1 }, { 'Idempotency-Key': 'f' })).toMatchObject({ status: 418 })
    expect(runs).toBe(3)
  })

  test('a CertainFailure frees the key, whatever status it is answered with', async () => {
    const { app, post } = await start({
      pay: {
        own: {},
        handler: () => {
          throw new CertainFailure('Declined.')
        },
      },
    })
    await post('/x/pay', {}, KEY)
    const record = await app.get(IdempotencyService).inspect({ scope: 'single-tenant', key: 'k' })
    expect(record).toMatchObject({ state: 'failed', uncertain: false })
  })

  test('a duplicate of a running request is refused', async () => {
    const { opened, open } = gate()
    const running = gate()
    const { post } = await start({
      pay: {
        own: {},
        handler: async () => {
          running.open()
          await opened
          return 'done'
        },
      },
    })
    const first = post('/x/pay', {}, KEY)
    await running.opened
    expect(await post('/x/pay', {}, KEY)).toMatchObject({ status: 409, json: { code: 'in_flight' } })
    open()
    expect(await first).toMatchObject({ status: 201, text: 'done' })
  })

  test('a version in the path is a part of what makes two requests the same', async () => {
    const { post } = await start({ pay: { handler: () => 'one', own: {} } }, {}, (app) =>
      app.enableVersioning({ type: VersioningType.URI }),
    )
    expect(await post('/v1/x/pay', {}, KEY)).toMatchObject({ text: 'one', replayed: false })
    expect(await post('/v1/x/pay', {}, KEY)).toMatchObject({ text: 'one', replayed: true })
  })

  test('options from other providers', async () => {
    const OPTIONS = 'the options'
    class Settings {}
    Module({
      providers: [{ provide: OPTIONS, useValue: { required: true } }],
      exports: [OPTIONS],
    })(Settings)
    class Routes {
      pay() {
        return 'paid'
      }
    }
    const descriptor = Object.getOwnPropertyDescriptor(Routes.prototype, 'pay') as PropertyDescriptor
    for (const decorate of [Post('pay'), Idempotent()]) decorate(Routes.prototype, 'pay', descriptor)
    Controller('x')(Routes)
    class AppModule {}
    Module({
      imports: [
        IdempotencyModule.forRootAsync({
          imports: [Settings],
          inject: [OPTIONS],
          useFactory: (own: Partial<NestOptions>) => ({ store: new MemoryStore(), scope: singleTenant, ...own }),
        }),
      ],
      controllers: [Routes],
    })(AppModule)
    const { post } = await startNest(platform as Platform, AppModule)
    expect(await post('/x/pay', {})).toMatchObject({ status: 400, json: { code: 'key_missing' } })
    expect(await post('/x/pay', {}, KEY)).toMatchObject({ status: 201, text: 'paid' })
  })

  test('mistakes in options are told when the application is created', async () => {
    const broken = moduleWith({}, { leaseMs: 1 })
    await expect(startNest(platform as Platform, broken)).rejects.toMatchObject({ code: 'options_invalid' })
  })
})

test('a resolver of GraphQL and a handler of messages are refused, with the way out', async () => {
  const { IdempotencyInterceptor } = await interceptorOf()
  const context = { getType: () => 'graphql' } as unknown as ExecutionContext
  await expect(new IdempotencyInterceptor(null).intercept(context, null)).rejects.toMatchObject({
    code: 'response_unsupported',
    message: expect.stringContaining('runner'),
  })
})

/** What `@Idempotent` adds to a route. */
async function interceptorOf() {
  class Routes {
    pay() {}
  }
  const descriptor = Object.getOwnPropertyDescriptor(Routes.prototype, 'pay') as PropertyDescriptor
  Idempotent()(Routes.prototype, 'pay', descriptor)
  const [IdempotencyInterceptor] = Reflect.getMetadata('__interceptors__', descriptor.value) as [
    new (protections: unknown) => { intercept(context: ExecutionContext, next: unknown): Promise<unknown> },
  ]
  return { IdempotencyInterceptor }
}
