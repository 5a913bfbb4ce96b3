import type { Type } from '@nestjs/common'
import { Mutation, Resolver } from '@nestjs/graphql'
import { agenticCommerce } from 'once-per-key'
import { MemoryStore } from 'once-per-key/memory'
import type { IdempotencyContext, NestOptions } from 'once-per-key/nest'
import { describe, expect, onTestFinished, test, vi } from 'vitest'
import { create, decorate, type Options, PLACES } from './serve-nest.js'

// What is wrong before the first request is told before it.

describe.each(PLACES)('$place', (place) => {
  const { common, entry, MessagePattern, NestFactory } = place.nest

  /** What the application says when it starts; nothing, where it does. */
  async function said(
    { controllers = [], providers = [] }: { controllers?: Type[]; providers?: Type[] },
    options?: Options,
  ): Promise<string> {
    const app = await create(place, controllers, { providers, ...(options && { options }) })
    try {
      await app.init()
      return 'nothing'
    } catch (error) {
      expect((error as { code?: string }).code).toBe('options_invalid')
      return (error as Error).message
    } finally {
      await app.close().catch(() => undefined)
    }
  }

  const quiet = { logger: false, abortOnError: false } as const

  const created = (root: Type) =>
    place.platform === 'Express'
      ? NestFactory.create(root, quiet)
      : NestFactory.create(root, new place.nest.FastifyAdapter(), quiet)

  /** A class with methods of these decorators. */
  function made(
    name: string,
    methods: Readonly<Record<string, readonly MethodDecorator[]>>,
    ofClass: readonly ClassDecorator[] = [],
  ): Type {
    const type = { [name]: class {} }[name] as Type
    for (const [method, decorators] of Object.entries(methods)) {
      Object.defineProperty(type.prototype, method, { value() {}, configurable: true, writable: true })
      decorate(type, method, decorators)
    }
    for (const decorator of ofClass) decorator(type)
    return type
  }

  const payments = (methods: Parameters<typeof made>[1], ...ofClass: ClassDecorator[]) =>
    made('Payments', methods, [common.Controller('payments'), ...ofClass])

  test('a method of a provider, such as a resolver of GraphQL, protects nothing', async () => {
    const create = [Mutation(() => Boolean), entry.Idempotent()]
    const message = await said({ providers: [made('PaymentsResolver', { create, list: [] }, [Resolver()])] })
    expect(message).toContain("\n  - PaymentsResolver.create: it is no controller's. @Idempotent() protects routes")
    expect(message).toContain('here use `runner` of once-per-key/run')
    expect(message).not.toContain('PaymentsResolver.list')
  })

  test('a provider as a whole is told once', async () => {
    const message = await said({
      providers: [made('Gateway', { a: [], b: [] }, [entry.Idempotent() as ClassDecorator])],
    })
    expect(message.match(/\n {2}- /g)).toHaveLength(1)
    expect(message).toContain("\n  - Gateway: it is no controller's.")
  })

  test('handlers of messages are told, by their own mark or that of their controller', async () => {
    const paid = [MessagePattern('paid')]
    expect(await said({ controllers: [payments({ paid: [...paid, entry.Idempotent()] })] })).toContain(
      '\n  - Payments.paid: it is called by messages.',
    )
    const marked = payments({ create: [common.Post()], paid, private: [] }, entry.Idempotent() as ClassDecorator)
    const message = await said({ controllers: [marked] })
    expect(message).toContain('\n  - Payments.paid: it is called by messages.')
    expect(message.match(/\n {2}- /g)).toHaveLength(1)
  })

  test('a method without a route is told', async () => {
    expect(await said({ controllers: [payments({ create: [entry.Idempotent()] })] })).toContain(
      '\n  - Payments.create: it is no route; @Post() and the like make one.',
    )
  })

  test.each([
    ['DELETE', common.Delete(), { methods: ['POST'] }, 'POST'],
    ['PUT', common.Put(), { profile: agenticCommerce }, 'POST'],
  ] as const)('a mark on %s, which `methods` does not name, is told', async (method, decorator, options, methods) => {
    expect(await said({ controllers: [payments({ look: [decorator, entry.Idempotent()] })] }, options)).toContain(
      `\n  - Payments.look: @Idempotent() has no effect on ${method}: \`methods\` are ${methods}. Remove it, or name`,
    )
  })

  test('a mark that is lost, since a decorator above it replaces the method, is told', async () => {
    const replaces: MethodDecorator = (_type, _name, descriptor) => {
      const method = descriptor.value as unknown as (...args: unknown[]) => unknown
      descriptor.value = ((...args: unknown[]) => method(...args)) as never
    }
    const create = [common.Post(), replaces, entry.Idempotent()]
    const fine = [common.Post('fine'), entry.Idempotent(), replaces]
    const message = await said({ controllers: [payments({ create, fine })] })
    expect(message).toContain('\n  - Payments.create: another decorator has replaced the method')
    expect(message).not.toContain('Payments.fine')
  })

  test('a method without a mark may replace one that has it, in a subclass', async () => {
    const base = made('Base', { create: [common.Post(), entry.Idempotent()] })
    const type = payments({ create: [common.Post()] })
    Object.setPrototypeOf(type.prototype, base.prototype)
    Object.setPrototypeOf(type, base)
    expect(await said({ controllers: [type] })).toBe('nothing')
  })

  test('a mark on what only reads is harmless', async () => {
    await expect(said({ controllers: [payments({ look: [common.Get(), entry.Idempotent()] })] })).resolves.toBe(
      'nothing',
    )
  })

  test('options of a route are told, all of them, with those of its controller and the module', async () => {
    const wrong = { maxRunMs: 1, requird: true } as Partial<NestOptions>
    const lax = { required: false }
    const message = await said(
      {
        controllers: [
          payments({
            create: [common.Post(), entry.Idempotent(wrong)],
            cancel: [common.Post('cancel'), entry.Idempotent(lax)],
            fine: [common.Post('fine'), entry.Idempotent({ required: true })],
          }),
        ],
      },
      { profile: agenticCommerce },
    )
    expect(message).toContain('\n  - Payments.create: requird: did you mean required?')
    expect(message).toContain('\n  - Payments.create: maxRunMs: 1 is less than leaseMs = 30000')
    expect(message).toContain('\n  - Payments.cancel: required: the profile agenticCommerce needs true')
    expect(message).not.toContain('fine')
  })

  test('@Operation() on a route that nothing protects is told', async () => {
    class Unprotected {
      create(_operation: IdempotencyContext) {}
    }
    common.Controller('payments')(Unprotected)
    decorate(Unprotected, 'create', [common.Post()], [entry.Operation()])
    expect(await said({ controllers: [Unprotected] })).toContain(
      '\n  - Unprotected.create: it takes @Operation(), but nothing protects it.',
    )
  })

  test('without the module, @Operation() is told by each request, and its handler does not run', async () => {
    const create = vi.fn()
    class Unprotected {
      create(operation: IdempotencyContext) {
        return create(operation)
      }
    }
    common.Controller('payments')(Unprotected)
    decorate(Unprotected, 'create', [common.Post()], [entry.Operation()])
    class Root {}
    common.Module({ controllers: [Unprotected] })(Root)
    const app = await created(Root)
    await app.listen(0, '127.0.0.1')
    onTestFinished(() => app.close())
    const { status } = await fetch(`${await app.getUrl()}/payments`, { method: 'POST' })
    expect([status, create.mock.calls]).toEqual([500, []])
  })

  test('what is right is not told: marked controllers that also read, @All(), methods that are named, unmarked providers', async () => {
    const reading = payments(
      { create: [common.Post()], list: [common.Get()], helper: [] },
      entry.Idempotent() as ClassDecorator,
    )
    const all = made(
      'All',
      {
        any: [common.All('any'), entry.Idempotent()],
        get: [common.Get('get'), entry.Idempotent({ methods: ['GET'] })],
      },
      [common.Controller('all')],
    )
    const both = made('Both', { create: [common.Post(), entry.Idempotent()] }, [common.Controller('both')])
    expect(await said({ controllers: [reading, all, both], providers: [made('Service', { run: [] }), both] })).toBe(
      'nothing',
    )
  })

  test('each of two modules of their own judges the routes that it protects', async () => {
    const feature = (path: string, options: Options, required: boolean) => {
      class Feature {}
      const imports = [
        entry.IdempotencyModule.forRoot({ store: new MemoryStore(), scope: () => 'acme', isGlobal: false, ...options }),
      ]
      const create = [common.Post(), entry.Idempotent({ required })]
      const controllers = [made('Payments', { create }, [common.Controller(path)])]
      common.Module({ imports, controllers })(Feature)
      return Feature
    }
    class Root {}
    // `required: false` contradicts the profile, which is not its own module's.
    common.Module({ imports: [feature('a', {}, false), feature('b', { profile: agenticCommerce }, true)] })(Root)
    const app = await created(Root)
    await app.init()
    await app.close()
  })

  test('a standalone application, such as a cron job, has the calls of operators', async () => {
    class Root {}
    const imports = [entry.IdempotencyModule.forRoot({ store: new MemoryStore(), scope: () => 'acme' })]
    common.Module({ imports, controllers: [payments({ create: [common.Post(), entry.Idempotent()] })] })(Root)
    const app = await NestFactory.createApplicationContext(Root, { logger: false, abortOnError: false })
    const service = app.get(entry.IdempotencyService)
    expect(await service.inspect({ scope: 'acme', key: 'k' })).toBeNull()
    await service.idle()
    await app.close()
  })

  test('of two global modules one would win, so both are refused', async () => {
    const imported = (header: string) =>
      entry.IdempotencyModule.forRoot({ store: new MemoryStore(), scope: () => 'acme', header })
    class Feature {}
    common.Module({ imports: [imported('A-Key')] })(Feature)
    class Root {}
    common.Module({ imports: [imported('Another-Key'), Feature] })(Root)
    const app = await NestFactory.create(Root, { logger: false, abortOnError: false })
    await expect(app.init()).rejects.toMatchObject({
      code: 'options_invalid',
      message: expect.stringContaining('imported more than once'),
    })
  })

  test('options that depend on a provider of each request are told', async () => {
    const perRequest = entry.IdempotencyModule.forRootAsync({
      inject: ['REQUEST'], // Nest's name for it.
      useFactory: () => ({ store: new MemoryStore(), scope: () => 'acme' }),
    })
    class Root {}
    common.Module({ imports: [perRequest] })(Root)
    const app = await created(Root)
    await expect(app.init()).rejects.toMatchObject({
      code: 'options_invalid',
      message: expect.stringContaining('made for each request'),
    })
  })

  test.each([
    ['@Idempotent() without the module', [], 'Import IdempotencyModule.forRoot({ store, scope }) in the root module'],
    ['@Idempotent() of another copy of the package than the module', [], 'two copies of once-per-key'],
    [
      'the module without forRoot',
      [entry.IdempotencyModule],
      'IdempotencyModule has no options. Import IdempotencyModule.forRoot',
    ],
    [
      'a factory that returns nothing',
      [entry.IdempotencyModule.forRootAsync({ useFactory: () => undefined as never })],
      'IdempotencyModule has no options.',
    ],
  ])('%s is told in words that say what to import', async (_name, imports, words) => {
    class Root {}
    common.Module({ imports, controllers: [payments({ create: [common.Post(), entry.Idempotent()] })] })(Root)
    await expect(NestFactory.create(Root, { logger: false, abortOnError: false })).rejects.toMatchObject({
      code: 'options_invalid',
      message: expect.stringContaining(words),
    })
  })
})
