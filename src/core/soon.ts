/** What may have to be waited for. */
export type Soon<Value> = Value | Promise<Value>

/** Goes on at once where there is nothing to wait for: on the way of each request, a wait costs more than the work. */
export function whenever<Value, Result>(value: Soon<Value>, next: (value: Value) => Soon<Result>): Soon<Result> {
  return value instanceof Promise ? value.then(next) : next(value)
}

/**
 * What an application's function answered, taken as `await` would take it: a promise is made of whatever has a `then`, whose
 * own result nobody trusts. Throws where even the look at it does.
 */
export function adopted(value: unknown): Soon<unknown> {
  const mayHaveThen = (typeof value === 'object' && value !== null) || typeof value === 'function'
  return mayHaveThen && 'then' in value ? Promise.resolve(value) : value
}
