import {
  applyDecorators,
  createParamDecorator,
  type ExecutionContext,
  SetMetadata,
  UseInterceptors,
} from '@nestjs/common'
import type { IdempotencyContext } from '../core/index.js'
import { IdempotencyInterceptor } from './interceptor.js'
import { OWN_OPTIONS, type OwnOptions } from './nest-options.js'

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
  return applyDecorators(SetMetadata(OWN_OPTIONS, options), UseInterceptors(IdempotencyInterceptor))
}

/**
 * The context of the handler's run, as a parameter: its key, attempt and `deriveKey`; `undefined` for a request without a key, which
 * `required: true` refuses.
 */
export const Operation: () => ParameterDecorator = createParamDecorator(
  (_data: unknown, context: ExecutionContext): IdempotencyContext | undefined =>
    context.switchToHttp().getRequest<{ idempotency?: IdempotencyContext }>().idempotency,
)
