export type MaybePromise<Value> = Value | Promise<Value>

/**
 * Continues synchronously if there is nothing to wait for: for each request, awaiting would cost more than the work.
 */
export function whenever<Value, Result>(
  value: MaybePromise<Value>,
  next: (value: Value) => MaybePromise<Result>,
): MaybePromise<Result> {
  return value instanceof Promise ? value.then(next) : next(value)
}

export function isThenable<Value>(value: MaybePromise<Value>): value is Promise<Value> {
  return typeof value === 'object' && value !== null && 'then' in value
}

/** Handles the rejection of a promise that nothing awaits, where a value was expected: otherwise it would end the process. */
export function ignoreRejection(value: unknown): void {
  if (value instanceof Promise) value.catch(() => {})
}

/** The same where nobody waits for the result: what `next` throws changes nothing of ours, and is thrown where nothing of ours runs. */
export function runAfterwards<Value>(value: MaybePromise<Value>, next: (value: Value) => void): void {
  if (value instanceof Promise) void value.then((later) => callAndThrowLater(next, later))
  else callAndThrowLater(next, value)
}

function callAndThrowLater<Value>(next: (value: Value) => void, value: Value): void {
  try {
    next(value)
  } catch (error) {
    process.nextTick(fail, error)
  }
}

function fail(error: unknown): never {
  throw error
}
