/** What may have to be waited for. */
export type Soon<Value> = Value | Promise<Value>

/** Goes on at once where there is nothing to wait for: on the way of each request, a wait costs more than the work. */
export function whenever<Value, Result>(value: Soon<Value>, next: (value: Value) => Soon<Result>): Soon<Result> {
  return value instanceof Promise ? value.then(next) : next(value)
}

/**
 * Asks an application's function about a request, and reads its answer as `await` would take it. Throws, or rejects with, what
 * `failed` makes of a failure, and what `read` throws.
 */
export function consult<Req, Result>(
  ask: (request: Req) => unknown,
  request: Req,
  read: (answer: unknown) => Result,
  failed: (cause: unknown) => Error,
): Soon<Result> {
  let answer: Soon<unknown>
  try {
    answer = adopted(ask(request))
  } catch (cause) {
    throw failed(cause)
  }
  if (!(answer instanceof Promise)) return read(answer)
  return answer.then(read, (cause) => {
    throw failed(cause)
  })
}

/** A promise is made of whatever has a `then`, whose own result nobody trusts. Throws where even the look at it does. */
function adopted(value: unknown): Soon<unknown> {
  const mayHaveThen = (typeof value === 'object' && value !== null) || typeof value === 'function'
  return mayHaveThen && 'then' in value ? Promise.resolve(value) : value
}
