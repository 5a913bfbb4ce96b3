import type { ServerResponse } from 'node:http'
import { Readable } from 'node:stream'
import type { ArgumentsHost, CallHandler, CanActivate, ExecutionContext, Type } from '@nestjs/common'
import { CertainFailure } from 'once-per-key'
import { MemoryStore } from 'once-per-key/memory'
import type { IdempotencyContext, NestOptions } from 'once-per-key/nest'
import type { Observable } from 'rxjs'
import { describe, expect, test, vi } from 'vitest'
import { gate } from '../../../test/support/gate.js'
import { decorate, type Options, PLACES, serve } from './serve-nest.js'

describe.each(PLACES)('$place', (place) => {
  const { common, entry, rxjs } = place.nest
  const { catchError, map, of, retry, tap, timeout } = rxjs

  /** `POST /payouts` with `@Idempotent(options)`. */
  function payouts(
    handle: (...args: never[]) => unknown,
    {
      options,
      methods = [],
      args = [],
    }: { options?: Partial<NestOptions>; methods?: MethodDecorator[]; args?: ParameterDecorator[] } = {},
  ): Type {
    class Payouts {
      create(...given: never[]) {
        return handle(...given)
      }
    }
    common.Controller('payouts')(Payouts)
    decorate(Payouts, 'create', [common.Post(), entry.Idempotent(options), ...methods], args)
    return Payouts
  }

  const guard: CanActivate = {
    canActivate(context: ExecutionContext) {
      const request = context.switchToHttp().getRequest()
      request.user = request.headers['x-user'] && { id: request.headers['x-user'] }
      return request.user !== undefined
    },
  }

  const byUser: Options = { scope: (request) => request.user?.id }

  test('the scope sees the user that a guard has set, and a replay has passed the guards', async () => {
    const handle = vi.fn(() => ({ paid: true }))
    const canActivate = vi.spyOn(guard, 'canActivate')
    const { post } = await serve(place, [payouts(handle)], {
      options: byUser,
      before: (app) => app.useGlobalGuards(guard),
    })
    expect(await post('/payouts', { headers: { 'X-User': 'ann' } })).toMatchObject({
      status: 201,
      json: { paid: true },
    })
    expect(await post('/payouts', { headers: { 'X-User': 'ann' } })).toMatchObject({ status: 201, isReplay: true })
    expect(await post('/payouts', { headers: { 'X-User': 'bob' } })).toMatchObject({ status: 201, isReplay: false })
    expect(handle).toHaveBeenCalledTimes(2)
    expect(canActivate).toHaveBeenCalledTimes(3)
    expect(await post()).toMatchObject({ status: 403, isReplay: false })
  })

  test('@Operation() is the context of the run, and nothing without a key', async () => {
    const handle = (operation?: IdempotencyContext) => ({ key: operation?.key ?? null, attempt: operation?.attempt })
    const { post } = await serve(place, [payouts(handle, { args: [entry.Operation()] })])
    expect((await post()).json).toEqual({ key: 'k', attempt: 1 })
    expect((await post('/payouts', { key: null })).json).toEqual({ key: null })
  })

  test('@HttpCode and @Header belong to the answer, and not to a refusal', async () => {
    const methods = [common.HttpCode(202), common.Header('X-Receipt', '17')]
    const { post } = await serve(place, [payouts(() => ({ paid: true }), { methods })])
    const first = await post()
    expect([first.status, first.headers.get('X-Receipt')]).toEqual([202, '17'])
    const replay = await post()
    expect([replay.status, replay.headers.get('X-Receipt'), replay.isReplay]).toEqual([202, '17', true])
    const refused = await post('/payouts', { body: { amount: 2 } })
    expect(refused).toMatchObject({ status: 409, json: { code: 'mismatched' } })
    expect(refused.headers.get('X-Receipt')).toBeNull()
  })

  test('a handler that answers by @Res() itself is replayed', async () => {
    const handle = (response: { status(code: number): { send(body: object): void } }) => {
      response.status(207).send({ by: 'hand' })
    }
    const { post } = await serve(place, [payouts(handle as never, { args: [common.Res()] })])
    const first = await post()
    expect(first).toMatchObject({ status: 207, json: { by: 'hand' } })
    expect(await post()).toMatchObject({ status: 207, text: first.text, isReplay: true })
  })

  test('a StreamableFile is kept and replayed with its headers', async () => {
    const handle = () =>
      new common.StreamableFile(Readable.from(['a', 'b']), { type: 'text/csv', disposition: 'inline' })
    const { post } = await serve(place, [payouts(handle)])
    const first = await post()
    const replay = await post()
    expect(replay).toMatchObject({ status: 201, text: 'ab', isReplay: true })
    for (const name of ['Content-Type', 'Content-Disposition']) {
      expect(replay.headers.get(name)).toBe(first.headers.get(name))
    }
  })

  test('an Observable, and a redirect, are answers like any', async () => {
    const { post } = await serve(place, [payouts(() => of({ paid: 1 }, { paid: 2 }))])
    expect((await post()).json).toEqual({ paid: 2 })
    expect(await post()).toMatchObject({ json: { paid: 2 }, isReplay: true })
    const redirecting = payouts(() => undefined, { methods: [common.Redirect('/payouts/17', 303)] })
    const { port } = await serve(place, [redirecting])
    const send = () =>
      fetch(`http://127.0.0.1:${port}/payouts`, {
        method: 'POST',
        headers: { 'Idempotency-Key': 'k' },
        redirect: 'manual',
      })
    for (const isReplay of [null, 'true']) {
      const { status, headers } = await send()
      expect([status, headers.get('Location'), headers.get('Idempotent-Replayed')]).toEqual([
        303,
        '/payouts/17',
        isReplay,
      ])
    }
  })

  test('a handler of events that is no GET streams them, and they are not kept', async () => {
    class Events {
      feed() {
        return of({ data: 'one' }, { data: 'two' })
      }
    }
    common.Controller('events')(Events)
    decorate(Events, 'feed', [entry.Idempotent(), common.Sse('feed')])
    // `@Sse()` says GET; a POST is what has effects.
    Reflect.defineMetadata('method', common.RequestMethod.POST, Events.prototype.feed)
    const { app, post } = await serve(place, [Events])
    const first = await post('/events/feed')
    // Nest 10 begins the response before its interceptors run.
    if (place.nest.name === 'Nest 10') {
      expect(first.text).toMatch(/event: error[\s\S]*begun before the idempotency middleware/)
      return
    }
    expect(first.headers.get('Content-Type')).toMatch(/^text\/event-stream/)
    expect(first.text).toMatch(/data: one\n\n[\s\S]*data: two/)
    await app.get(entry.IdempotencyService).idle()
    expect(await post('/events/feed')).toMatchObject({ status: 409, json: { code: 'answer_not_kept' } })
  })

  test('versions in the path are protected each by itself', async () => {
    const handle = vi.fn(() => ({ paid: true }))
    const versioned = [1, 2].map((version) => {
      const type = payouts(handle)
      common.Controller({ path: 'payouts', version: `${version}` })(type)
      return type
    })
    const { post } = await serve(place, versioned, {
      before: (app) => app.enableVersioning({ type: common.VersioningType.URI }),
    })
    expect(await post('/v1/payouts')).toMatchObject({ status: 201, isReplay: false })
    expect(await post('/v1/payouts')).toMatchObject({ status: 201, isReplay: true })
    expect(await post('/v2/payouts')).toMatchObject({ status: 409, json: { code: 'mismatched' } })
    expect(await post('/v2/payouts', { key: 'k2' })).toMatchObject({ status: 201 })
    expect(handle).toHaveBeenCalledTimes(2)
  })

  test('versions in a header are one route, unless the fingerprint has the version', async () => {
    const version = { type: common.VersioningType.HEADER, header: 'X-Api-Version' } as const
    const serveVersions = async (options: Options) => {
      const versioned = [1, 2].map((number) => {
        const type = payouts(() => ({ version: number }))
        common.Controller({ path: 'payouts', version: `${number}` })(type)
        return type
      })
      const { post } = await serve(place, versioned, { options, before: (app) => app.enableVersioning(version) })
      return (number: number) => post('/payouts', { headers: { 'X-Api-Version': `${number}` } })
    }
    const replaying = await serveVersions({})
    expect(await replaying(1)).toMatchObject({ status: 201, json: { version: 1 } })
    expect(await replaying(2)).toMatchObject({ status: 201, isReplay: true, json: { version: 1 } })

    const fingerprint: Options['fingerprint'] = (request) => [request.headers['x-api-version'], request.body]
    const refusing = await serveVersions({ fingerprint })
    expect(await refusing(1)).toMatchObject({ status: 201, json: { version: 1 } })
    expect(await refusing(2)).toMatchObject({ status: 409, json: { code: 'mismatched' } })
  })

  test('an exception is answered by the filters; a refusal frees the key, another failure leaves it unknown', async () => {
    const seen: unknown[] = []
    const handle = (operation: IdempotencyContext) => {
      seen.push(operation.previousOutcome)
      if (seen.length === 1) throw new common.UnprocessableEntityException('no')
      if (seen.length === 2) throw new Error('the bank is away')
      return { paid: true }
    }
    const { post } = await serve(place, [payouts(handle as never, { args: [entry.Operation()] })])
    expect(await post()).toMatchObject({ status: 422, json: { message: 'no' } })
    expect(await post()).toMatchObject({ status: 500 })
    expect(await post()).toMatchObject({ status: 201 })
    expect(await post()).toMatchObject({ status: 201, isReplay: true })
    expect(seen).toEqual(['none', 'failed', 'unknown'])
  })

  test('without a filter, a CertainFailure is answered with its status and its message', async () => {
    const decline = () => {
      throw new CertainFailure('The card was declined.', { status: 402 })
    }
    const { post } = await serve(place, [payouts(decline)])
    expect(await post()).toMatchObject({ status: 402, json: { message: 'The card was declined.' } })
  })

  test('a CertainFailure is certain, whatever a filter answers', async () => {
    const seen: unknown[] = []
    const handle = (operation: IdempotencyContext) => {
      seen.push(operation.previousOutcome)
      if (seen.length === 1) throw new CertainFailure('The card was declined.')
      return { paid: true }
    }
    const filter = {
      catch(_error: unknown, host: ArgumentsHost) {
        host.switchToHttp().getResponse().status(500).send({ message: 'declined' })
      },
    }
    common.Catch()(filter.constructor)
    const { post } = await serve(place, [payouts(handle as never, { args: [entry.Operation()] })], {
      before: (app) => app.useGlobalFilters(filter),
    })
    expect(await post()).toMatchObject({ status: 500, json: { message: 'declined' } })
    expect(await post()).toMatchObject({ status: 201 })
    expect(seen).toEqual(['none', 'failed'])
  })

  test('what an interceptor makes of the value is what is stored', async () => {
    const wrap = {
      intercept: (_: ExecutionContext, next: CallHandler) => next.handle().pipe(map((data) => ({ data }))),
    }
    const { post } = await serve(place, [payouts(() => ({ paid: true }))], {
      before: (app) => app.useGlobalInterceptors(wrap),
    })
    expect((await post()).json).toEqual({ data: { paid: true } })
    expect(await post()).toMatchObject({ json: { data: { paid: true } }, isReplay: true })
  })

  test('interceptors around a replay see its value, those around a refusal an exception; neither reaches the client', async () => {
    const seen: unknown[] = []
    const filtered: unknown[] = []
    const watch = {
      intercept: (_: ExecutionContext, next: CallHandler): Observable<unknown> =>
        next.handle().pipe(
          tap({ next: (value) => seen.push(value), error: (error) => seen.push(error.getStatus()) }),
          map(() => ({ changed: true })),
          timeout(5_000),
        ),
    }
    const filter = {
      catch(error: { getStatus(): number }, host: ArgumentsHost) {
        filtered.push(error.getStatus())
        host.switchToHttp().getResponse().status(418).send({ message: 'filtered' })
      },
    }
    common.Catch()(filter.constructor)
    const { post } = await serve(place, [payouts(() => ({ paid: true }))], {
      before: (app) => app.useGlobalInterceptors(watch).useGlobalFilters(filter),
    })
    expect((await post()).json).toEqual({ changed: true })
    expect(await post()).toMatchObject({ status: 201, json: { changed: true }, isReplay: true })
    expect(await post('/payouts', { body: { amount: 2 } })).toMatchObject({ status: 409, json: { code: 'mismatched' } })
    expect(seen).toEqual([{ paid: true }, { changed: true }, 409])
    expect(filtered).toEqual([409])
  })

  test('interceptors around the replay of a failure that is kept see an exception, as at first', async () => {
    const seen: unknown[] = []
    const watch = {
      intercept: (_: ExecutionContext, next: CallHandler) =>
        next.handle().pipe(
          tap({
            next: (value) => seen.push(value),
            error: (error) => seen.push([error.getStatus(), error.getResponse()]),
          }),
        ),
    }
    const decline = () => {
      throw new common.HttpException({ code: 'declined' }, 402)
    }
    const options: Partial<NestOptions> = { isSuccess: ({ status }) => status < 500 }
    const { post } = await serve(place, [payouts(decline, { options })], {
      before: (app) => app.useGlobalInterceptors(watch),
    })
    expect(await post()).toMatchObject({ status: 402, json: { code: 'declined' }, isReplay: false })
    expect(await post()).toMatchObject({ status: 402, json: { code: 'declined' }, isReplay: true })
    expect(seen).toEqual([
      [402, { code: 'declined' }],
      [402, { code: 'declined' }],
    ])
  })

  test('what a filter makes of a refusal that was sent is not the status in an access log', async () => {
    const logged: number[] = []
    const filter = {
      catch(_error: unknown, host: ArgumentsHost) {
        host.switchToHttp().getResponse().status(418).send({ message: 'filtered' })
      },
    }
    common.Catch()(filter.constructor)
    const { post } = await serve(place, [payouts(() => ({ paid: true }))], {
      before: (app) =>
        app.useGlobalFilters(filter).use((_request: unknown, response: ServerResponse, next: () => void) => {
          response.once('finish', () => logged.push(response.statusCode))
          next()
        }),
    })
    await post()
    await post()
    await post('/payouts', { body: { amount: 2 } })
    expect(logged).toEqual([201, 201, 409])
  })

  test('an interceptor that calls the handler again does so in one run', async () => {
    const attempts: unknown[] = []
    const handle = (operation: IdempotencyContext) => {
      attempts.push(operation.attempt)
      if (attempts.length === 1) throw new Error('a hiccup')
      return { paid: true }
    }
    const again = { intercept: (_: ExecutionContext, next: CallHandler) => next.handle().pipe(retry(1)) }
    const { post } = await serve(place, [payouts(handle as never, { args: [entry.Operation()] })], {
      before: (app) => app.useGlobalInterceptors(again),
    })
    expect(await post()).toMatchObject({ status: 201 })
    expect(attempts).toEqual([1, 1])
  })

  test('an interceptor that calls the handler again after a CertainFailure makes an answer', async () => {
    let calls = 0
    const handle = () => {
      if (++calls === 1) throw new CertainFailure('The card was declined.')
      return { paid: calls }
    }
    const again = { intercept: (_: ExecutionContext, next: CallHandler) => next.handle().pipe(retry(1)) }
    const { post } = await serve(place, [payouts(handle)], { before: (app) => app.useGlobalInterceptors(again) })
    expect(await post()).toMatchObject({ status: 201, json: { paid: 2 }, isReplay: false })
    expect(await post()).toMatchObject({ status: 201, json: { paid: 2 }, isReplay: true })
  })

  test('an interceptor that tries again runs nothing that was refused, and nothing without a scope', async () => {
    const handle = vi.fn(() => ({ paid: true }))
    const again = { intercept: (_: ExecutionContext, next: CallHandler) => next.handle().pipe(retry(2)) }
    const { post } = await serve(place, [payouts(handle)], {
      options: { scope: (request) => request.headers['x-user'] },
      before: (app) => app.useGlobalInterceptors(again),
    })
    const headers = { 'X-User': 'ann' }
    expect(await post('/payouts', { headers })).toMatchObject({ status: 201 })
    expect(await post('/payouts', { headers, body: { amount: 2 } })).toMatchObject({ status: 409 })
    expect(await post('/payouts')).toMatchObject({ status: 500 })
    expect(handle).toHaveBeenCalledTimes(1)
  })

  test('an interceptor that recovers from a failure makes an answer', async () => {
    const recover = {
      intercept: (_: ExecutionContext, next: CallHandler) => next.handle().pipe(catchError(() => of({ queued: true }))),
    }
    const handle = () => {
      throw new Error('the bank is away')
    }
    const { post } = await serve(place, [payouts(handle)], { before: (app) => app.useGlobalInterceptors(recover) })
    expect(await post()).toMatchObject({ status: 201, json: { queued: true } })
    expect(await post()).toMatchObject({ status: 201, isReplay: true })
  })

  test('options of a method replace those of its controller, and these the module’s', async () => {
    class Both {
      strict() {
        return { strict: true }
      }
      lax() {
        return { strict: false }
      }
      plain() {
        return { plain: true }
      }
    }
    common.Controller('both')(Both)
    entry.Idempotent({ required: true, header: 'X-Key' })(Both)
    decorate(Both, 'strict', [common.Post('strict')])
    decorate(Both, 'lax', [common.Post('lax'), entry.Idempotent({ required: false })])
    const { post } = await serve(place, [Both], { options: { header: 'Never' } })
    expect(await post('/both/strict')).toMatchObject({ status: 400, json: { code: 'key_missing' } })
    expect(await post('/both/lax')).toMatchObject({ status: 201 })
    const headers = { 'X-Key': 'k' }
    expect(await post('/both/lax', { headers })).toMatchObject({ status: 201, isReplay: false })
    expect(await post('/both/lax', { headers })).toMatchObject({ status: 201, isReplay: true })
  })

  test('a method of a marked controller claims after its own interceptors, which parse', async () => {
    const parse = {
      intercept(context: ExecutionContext, next: CallHandler) {
        const request = context.switchToHttp().getRequest()
        request.file = request.headers['x-file']
        return next.handle()
      },
    }
    const handle = vi.fn(() => ({ stored: true }))
    class Files {
      upload() {
        return handle()
      }
    }
    common.Controller('files')(Files)
    entry.Idempotent()(Files)
    decorate(Files, 'upload', [
      common.Post(),
      entry.Idempotent({ fingerprint: (request) => [request.file] }),
      common.UseInterceptors(parse),
    ])
    const { post } = await serve(place, [Files])
    const upload = (file: string) => post('/files', { headers: { 'X-File': file } })
    expect(await upload('a')).toMatchObject({ status: 201, isReplay: false })
    expect(await upload('a')).toMatchObject({ status: 201, isReplay: true })
    expect(await upload('b')).toMatchObject({ status: 409, json: { code: 'mismatched' } })
    expect(handle).toHaveBeenCalledTimes(1)
  })

  test('a method that several controllers inherit has the options of each', async () => {
    class Base {
      create() {
        return { paid: true }
      }
    }
    class Lax extends Base {}
    class Strict extends Base {}
    decorate(Base, 'create', [common.Post()])
    common.Controller('lax')(Lax)
    common.Controller('strict')(Strict)
    entry.Idempotent()(Lax)
    entry.Idempotent({ required: true })(Strict)
    const { post } = await serve(place, [Lax, Strict])
    expect(await post('/lax', { key: null })).toMatchObject({ status: 201 })
    expect(await post('/strict', { key: null })).toMatchObject({ status: 400, json: { code: 'key_missing' } })
  })

  test('an option of a method that is undefined is that of the module', async () => {
    const handle = () => ({ paid: true })
    const options = { required: undefined } as unknown as Partial<NestOptions>
    const { post } = await serve(place, [payouts(handle, { options })], { options: { required: true } })
    expect(await post('/payouts', { key: null })).toMatchObject({ status: 400, json: { code: 'key_missing' } })
  })

  test('a route without @Idempotent() is as it was', async () => {
    class Open {
      create() {
        return { open: true }
      }
    }
    common.Controller('payouts')(Open)
    decorate(Open, 'create', [common.Post()])
    const { post } = await serve(place, [Open])
    await post()
    expect(await post()).toMatchObject({ status: 201, isReplay: false })
  })

  test('the options can be made from other providers', async () => {
    const { IdempotencyModule } = entry
    class Config {
      readonly store = new MemoryStore()
    }
    class ConfigModule {}
    common.Module({ providers: [Config], exports: [Config] })(ConfigModule)
    const made = IdempotencyModule.forRootAsync({
      imports: [ConfigModule],
      inject: [Config],
      useFactory: async ({ store }: Config) => ({ store, scope: () => 'acme' }),
    })
    class Root {}
    common.Module({ imports: [made], controllers: [payouts(() => ({ paid: true }))] })(Root)
    const app = await place.nest.NestFactory.create(Root, { logger: false })
    await app.init()
    expect(app.get(entry.IdempotencyService).inspect({ scope: 'acme', key: 'k' })).toBeInstanceOf(Promise)
    await app.close()
  })

  test('to shut down, the application waits for a handler whose client has left', async () => {
    const { opened, open } = gate()
    const begun = gate()
    const handle = async () => {
      begun.open()
      await opened
      return { paid: true }
    }
    const { app, port } = await serve(place, [payouts(handle)])
    const client = new AbortController()
    const left = fetch(`http://127.0.0.1:${port}/payouts`, {
      method: 'POST',
      headers: { 'Idempotency-Key': 'k' },
      signal: client.signal,
    }).catch(() => 'left')
    await begun.opened
    client.abort()
    expect(await left).toBe('left')
    const order: string[] = []
    const closed = app.close().then(() => order.push('closed'))
    await new Promise((resolve) => setImmediate(resolve))
    order.push('opened')
    open()
    await closed
    expect(order).toEqual(['opened', 'closed'])
  })
})
