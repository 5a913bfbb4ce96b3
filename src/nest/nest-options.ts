import type { IdempotencyOptions } from '../http/index.js'

/** The request of either platform, with what guards have set. */
export interface NestRequest {
  readonly headers: Readonly<Record<string, string | readonly string[] | undefined>>
  // biome-ignore lint/suspicious/noExplicitAny: guards and parsers set what they like
  readonly [name: string]: any
}

/**
 * The options of `IdempotencyModule.forRoot`: those of `idempotency`, whose functions get Nest's request after its guards. They may
 * declare it as what it is: Express's `Request`, `FastifyRequest`, or a type of the application's own.
 */
export type NestOptions = {
  readonly [Name in keyof IdempotencyOptions<NestRequest>]: AsMethod<IdempotencyOptions<NestRequest>[Name]>
}

/** A method's parameter may be declared as a subtype; that of another function may not. */
type AsMethod<Option> = Option extends (...args: infer Args) => infer Result
  ? { method(...args: Args): Result }['method']
  : Option

export type OwnOptions = Partial<NestOptions>

export const OWN_OPTIONS = 'once-per-key: options'

/** Whether `@Idempotent()` is on a method or its class. */
export function isMarked(...targets: readonly object[]): boolean {
  return targets.some((target) => Reflect.hasMetadata(OWN_OPTIONS, target))
}

/** In the metadata of a class, by the method's name: another decorator may replace the method, and with it what is said of it. */
const MARK = 'once-per-key: mark'

export function markMethodProtected(target: object, name?: string | symbol): void {
  if (name !== undefined) Reflect.defineMetadata(MARK, true, target, name)
}

/** Whether `@Idempotent()` was on the method that this prototype has, which is no longer marked. */
export function hasLostMark(prototype: object, name: string): boolean {
  const own = Reflect.getOwnPropertyDescriptor(prototype, name)
  if (own === undefined) {
    const parent = Reflect.getPrototypeOf(prototype)
    return parent !== null && hasLostMark(parent, name)
  }
  return Reflect.hasOwnMetadata(MARK, prototype, name) && !isMarked(own.value)
}
