import type { CallHandler, ExecutionContext, NestInterceptor } from '@nestjs/common'
// As namespaces: a name that an old version lacks is then refused in module.ts, and not by Node, which would name no version.
import * as nest from '@nestjs/common'
import * as rxjs from 'rxjs'
import { type Answer, IdempotencyError } from '../core/index.js'
import type { SentAnswer } from '../fastify/protected-answers.js'
import type { NestCall } from './entries.js'
import { Protections } from './protections.js'

/** Nest's name for what `@Header()` sets. */
const RESPONSE_HEADERS = '__headers__'
/** Nest's name for what `@UseInterceptors()` adds. */
const INTERCEPTORS = '__interceptors__'

/** Claims a request after its guards; a refusal or a replay is sent below Nest, which goes on as for any other value or exception. */
export class IdempotencyInterceptor implements NestInterceptor {
  readonly protections: Protections

  constructor(protections: Protections | undefined) {
    if (protections === undefined) throw moduleMissingError()
    this.protections = protections
  }

  async intercept(context: ExecutionContext, next: CallHandler): Promise<rxjs.Observable<unknown>> {
    if (context.getType<string>() !== 'http') throw unsupportedContextError(context.getType())
    const http = context.switchToHttp()
    const call: NestCall = { request: http.getRequest(), response: http.getResponse(), next: http.getNext() }
    const entry = this.protections.getProtection(context.getHandler(), context.getClass())
    const own: readonly { name: string }[] = Reflect.getMetadata(RESPONSE_HEADERS, context.getHandler()) ?? []
    const answered = await entry.claim(
      call,
      own.map(({ name }) => name),
    )
    if (answered !== null) return replaceHandlerResult(answered)
    entry.onHandlerCalled(call)
    return next.handle().pipe(
      rxjs.tap({
        next: (value) => value instanceof nest.StreamableFile && entry.onStreamReturned(call, value.getStream()),
        error: (error) => entry.onError(call, error),
      }),
    )
  }
}

// As decorators do, which the language has not had in this form.
nest.Injectable()(IdempotencyInterceptor)
nest.Inject(Protections)(IdempotencyInterceptor, undefined, 0)
nest.Optional()(IdempotencyInterceptor, undefined, 0)

/** On a controller. A route with `@Idempotent()` of its own claims where that stands: after an interceptor that parses uploads. */
export class ControllerInterceptor extends IdempotencyInterceptor {
  override async intercept(context: ExecutionContext, next: CallHandler): Promise<rxjs.Observable<unknown>> {
    const own: readonly unknown[] = Reflect.getMetadata(INTERCEPTORS, context.getHandler()) ?? []
    return own.includes(IdempotencyInterceptor) ? next.handle() : super.intercept(context, next)
  }
}

/** Interceptors around this one see a value of the kind that they are used to, or an exception; it is sent already. */
function replaceHandlerResult({ answer, isReplay }: SentAnswer): rxjs.Observable<unknown> {
  const content = parseAnswerJson(answer)
  if (isReplay && answer.status < 400) return rxjs.of(content)
  throw new nest.HttpException((content ?? {}) as object, answer.status)
}

function parseAnswerJson({ headers, body }: Answer): unknown {
  const [, type = ''] = headers.find(([name]) => name.toLowerCase() === 'content-type') ?? []
  if (body === null || !/^[^;]*\bjson\b/i.test(type)) return undefined
  try {
    return JSON.parse(Buffer.from(body).toString())
  } catch {
    return undefined // Encoded, for example by compression.
  }
}

/** In place of Nest's words, which name a class that only this package knows. */
function moduleMissingError(): IdempotencyError {
  return new IdempotencyError(
    'options_invalid',
    '@Idempotent() is used, and IdempotencyModule is not there. Import IdempotencyModule.forRoot({ store, scope }) in the root module; with ' +
      '`isGlobal: false`, in each module whose controllers use @Idempotent(). If it is imported, the process has loaded two copies of ' +
      'once-per-key, such as one by `import` and one by `require`: take both from one.',
  )
}

function unsupportedContextError(type: string): IdempotencyError {
  return new IdempotencyError(
    'response_unsupported',
    `@Idempotent protects HTTP handlers, whose response can be held until it is stored; this one is called by ${type}. Use the ` +
      'function form, `runner` of once-per-key/run, inside the handler, with a key of the message or an argument of the mutation.',
  )
}
