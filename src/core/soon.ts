/** What may have to be waited for. */
export type Soon<Value> = Value | PromiseLike<Value>

/** Goes on at once where there is nothing to wait for: on the way of each request, a wait costs more than the work. */
export function whenever<Value, Result>(
  value: Soon<Value>,
  next: (value: Value) => Soon<Result>,
): Result | PromiseLike<Result> {
  return isPromiseLike(value) ? value.then(next) : next(value)
}

export function isPromiseLike<Value>(value: Soon<Value>): value is PromiseLike<Value> {
  return typeof value === 'object' && value !== null && typeof (value as PromiseLike<Value>).then === 'function'
}
