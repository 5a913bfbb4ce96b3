import { optionRules } from '../core/index.js'
import { type IdempotencyOptions, requestOptions } from '../http/index.js'

/** The options whose functions receive the request, and the further arguments of the platform: found, so that none is forgotten. */
type FunctionName = {
  [Name in keyof IdempotencyOptions]-?: IdempotencyOptions<1>[Name] extends IdempotencyOptions<2>[Name] ? never : Name
}[keyof IdempotencyOptions]
type OptionFunction<Name extends FunctionName> = NonNullable<IdempotencyOptions<Request>[Name]>
/** A method's parameter may be declared as a subtype, such as `NextRequest`; that of another function may not. */
type CallFunction<Name extends FunctionName> = {
  // biome-ignore lint/suspicious/noExplicitAny: the platform's arguments, as the handler declares them
  method(...args: [...Parameters<OptionFunction<Name>>, ...rest: any[]]): ReturnType<OptionFunction<Name>>
}['method']

/** Each means what it means elsewhere. */
type CallOptions = {
  [Name in keyof Pick<IdempotencyOptions<Request>, Exclude<FunctionName, 'scope'>>]: CallFunction<Name> | undefined
}

/**
 * The options of the Fetch binding: as elsewhere, but their functions receive the request and then the further
 * arguments of the handler in `once(handler)`. A function that reads the body must read a copy: `request.clone()`.
 */
export interface FetchIdempotencyOptions extends Omit<IdempotencyOptions<Request>, FunctionName>, CallOptions {
  /**
   * Whose key it is: the merchant account that authentication found. May be absent if each call of `once.handle` has a
   * scope. There is no default, because a shared one leaks one merchant's answers to another; an application with a
   * single tenant uses `singleTenant`.
   */
  readonly scope?: CallFunction<'scope'> | undefined
  /**
   * How much of a body is read, if there is a key. A larger one gets 413 `body_too_large`.
   * @default 1_048_576 (1 MiB): it is held in memory
   */
  readonly maxBodyBytes?: number | undefined
}

/** One call, as the option functions receive it. */
export interface FetchArguments {
  readonly request: Request
  readonly rest: readonly unknown[]
  /** From the caller of `once.handle`, instead of the option. */
  readonly told?: { readonly scope: string } | undefined
}

/** The options of a binding that reads bodies itself. */
export const readingOptions = {
  ...requestOptions,
  maxBodyBytes: { rule: optionRules.anInteger(1, Number.MAX_SAFE_INTEGER), default: 1_048_576 },
}

/** Each call may bring its own scope. */
export const fetchOptions = { ...readingOptions, scope: optionRules.aFunction }

/** The options of the engine. */
export function toEngineOptions({
  maxBodyBytes: _,
  ...given
}: FetchIdempotencyOptions): IdempotencyOptions<FetchArguments> {
  const { scope = getNoScope } = given
  const forEngine = {
    ...given,
    ...toEngineFunctions({ ...given, scope }),
  } as unknown as IdempotencyOptions<FetchArguments>
  const ofOptions = forEngine.scope
  return { ...forEngine, scope: (asked) => (asked.told === undefined ? ofOptions(asked) : asked.told.scope) }
}

/** Which argument of an option function is the request. */
const REQUEST_AT: Readonly<Record<FunctionName, 0 | 1>> = {
  scope: 0,
  skip: 0,
  fingerprint: 0,
  firstSent: 0,
  isSuccess: 1,
  isCertainFailure: 1,
  keepFailure: 1,
  streams: 1,
  renderProblem: 1,
}

/** Values that are not functions are left to the engine's rules. */
function toEngineFunctions(given: Readonly<Record<string, unknown>>): Record<string, unknown> {
  const functions = Object.entries(REQUEST_AT).flatMap(([name, at]) => {
    const option = given[name]
    if (typeof option !== 'function') return []
    const callWithRequest = (...args: unknown[]) => {
      const { request, rest } = args[at] as FetchArguments
      return option(...args.slice(0, at), request, ...rest)
    }
    return [[name, Object.assign(callWithRequest, option)]] // Keeps the mark of `withoutBody`.
  })
  return Object.fromEntries(functions)
}

/** Refused as `scope_invalid` if neither the call nor the option has a scope. */
function getNoScope(): undefined {}
