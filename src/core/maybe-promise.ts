/** What may have to be waited for. */
export type MaybePromise<Value> = Value | Promise<Value>

/** Goes on at once where there is nothing to wait for: on the way of each request, a wait costs more than the work. */
export function whenever<Value, Result>(
  value: MaybePromise<Value>,
  next: (value: Value) => MaybePromise<Result>,
): MaybePromise<Result> {
  return value instanceof Promise ? value.then(next) : next(value)
}

export function isThenable(value: unknown): value is Promise<unknown> {
  return typeof value === 'object' && value !== null && 'then' in value
}
