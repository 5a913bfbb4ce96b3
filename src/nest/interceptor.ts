import { type CallHandler, type ExecutionContext, Inject, Injectable, type NestInterceptor } from '@nestjs/common'
import { catchError, type Observable } from 'rxjs'
import { IdempotencyError } from '../core/index.js'
import { Protections } from './protections.js'

/** Claims a request after its guards; whatever a claim refuses or replays is sent below Nest, which then waits for nothing. */
export class IdempotencyInterceptor implements NestInterceptor {
  readonly #protections: Protections

  constructor(protections: Protections) {
    this.#protections = protections
  }

  async intercept(context: ExecutionContext, next: CallHandler): Promise<Observable<unknown>> {
    if (context.getType<string>() !== 'http') throw unsupported(context.getType())
    const http = context.switchToHttp()
    const entry = this.#protections.entryOf(context.getHandler(), context.getClass())
    const request = http.getRequest()
    if (!(await entry.claim(request, http.getResponse()))) await answeredBelow()
    return next.handle().pipe(
      catchError((error: unknown) => {
        entry.failed(request, error)
        throw error
      }),
    )
  }
}

// As decorators do, which the language has not had in this form.
Injectable()(IdempotencyInterceptor)
Inject(Protections)(IdempotencyInterceptor, undefined, 0)

/**
 * The response is sent, and Nest would send another one for whatever this resolved with. Nothing references the promise, so it is
 * collected together with the request.
 */
function answeredBelow(): Promise<never> {
  return new Promise(() => {})
}

function unsupported(type: string): IdempotencyError {
  return new IdempotencyError(
    'response_unsupported',
    `@Idempotent protects HTTP handlers, whose response can be held until it is stored; this one is called by ${type}. Use the ` +
      'function form, `runner` of once-per-key/run, inside the handler, with a key of the message or an argument of the mutation.',
  )
}
