import { checkOptions, optionRules } from '../core/index.js'
import { type IdempotencyOptions, mistakesInOptions } from '../http/index.js'

/** Options whose functions are given the request, and whatever else the platform passes. */
type Functions = 'scope' | 'skip' | 'fingerprint' | 'isSuccess' | 'isCertainFailure' | 'renderProblem'
type Of<Name extends Functions> = NonNullable<IdempotencyOptions<Request>[Name]>
// biome-ignore lint/suspicious/noExplicitAny: whatever the platform passes, as the handler declares it
type Called<Name extends Functions> = (...args: [...Parameters<Of<Name>>, ...rest: any[]]) => ReturnType<Of<Name>>

/**
 * The options of Fetch's binding: as elsewhere, with functions that are given the request and, behind it, what the handler of
 * `once(handler)` is given. A function that reads the body reads a copy: `request.clone()`.
 */
export interface FetchIdempotencyOptions extends Omit<IdempotencyOptions<Request>, Functions> {
  /**
   * Whose key it is: the merchant account, as authentication found it. It may be absent where each call of `once.handle` tells
   * it. There is no default, since a shared one leaks one merchant's answers to another; an application with a single tenant
   * says `singleTenant`.
   */
  readonly scope?: Called<'scope'>
  /** Requests to leave alone, although their method is covered. */
  readonly skip?: Called<'skip'>
  /** Stands for query and body in the fingerprint. */
  readonly fingerprint?: Called<'fingerprint'>
  /** Whether an answer is a success, which is stored and never run again. */
  readonly isSuccess?: Called<'isSuccess'>
  /** Whether a failure certainly had no effect, so that its key is free for a corrected request. */
  readonly isCertainFailure?: Called<'isCertainFailure'>
  /** Another shape for a refusal's body. */
  readonly renderProblem?: Called<'renderProblem'>
  /**
   * How much of a body is read to compare it with an earlier one's. A larger one is refused with 413 `body_too_large`; without a
   * key, or where `skip` leaves it alone, it passes.
   * @default 1_048_576 (1 MiB): it is held in memory
   */
  readonly maxBodyBytes?: number
}

/** One call, as the option functions are given it. */
export interface Asked {
  readonly request: Request
  readonly rest: readonly unknown[]
  /** Told by the caller of `once.handle`, in place of the option. */
  readonly told?: { readonly scope: string } | undefined
}

export const DEFAULT_MAX_BODY_BYTES = 1_048_576

/**
 * The options of the engine behind them.
 *
 * @throws IdempotencyError `options_invalid`, which lists every mistake.
 */
export function engineOptions({ maxBodyBytes, ...given }: FetchIdempotencyOptions): IdempotencyOptions<Asked> {
  const { scope = notTold } = given
  const options = { ...given, ...forCalls({ ...given, scope }) } as unknown as IdempotencyOptions<Asked>
  checkMaxBodyBytes(maxBodyBytes, options)
  const ofOptions = options.scope
  return { ...options, scope: (asked) => (asked.told === undefined ? ofOptions(asked) : asked.told.scope) }
}

/** All mistakes in one error. */
export function checkMaxBodyBytes<Req>(maxBodyBytes: unknown, options: IdempotencyOptions<Req>): void {
  const own = { maxBodyBytes }
  const rules = { maxBodyBytes: optionRules.anInteger(1, Number.MAX_SAFE_INTEGER) }
  checkOptions('idempotency()', own, own, rules, { more: mistakesInOptions(options) })
}

/** Which argument of an option's function is the request. */
const REQUEST_AT: Readonly<Record<Functions, 0 | 1>> = {
  scope: 0,
  skip: 0,
  fingerprint: 0,
  isSuccess: 1,
  isCertainFailure: 1,
  renderProblem: 1,
}

/** Anything but a function is left for the engine to refuse. */
function forCalls(given: Readonly<Record<string, unknown>>): Record<string, unknown> {
  const functions = Object.entries(REQUEST_AT).flatMap(([name, at]) => {
    const option = given[name]
    if (typeof option !== 'function') return []
    const called = (...args: unknown[]) => {
      const { request, rest } = args[at] as Asked
      return option(...args.slice(0, at), request, ...rest)
    }
    return [[name, Object.assign(called, option)]] // What marks it, marks this: `withoutBody`.
  })
  return Object.fromEntries(functions)
}

/** Refused as `scope_invalid` where neither says whose key it is. */
function notTold(): undefined {}
