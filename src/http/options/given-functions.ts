import type { MaybePromise } from '../../core/maybe-promise.js'

/**
 * Calls an application's function for a request, and treats its result as `await` would. Throws, or rejects with, what
 * `failed` makes of a failure, and what `read` throws.
 */
export function callOption<Req, Result>(
  ask: (request: Req) => unknown,
  request: Req,
  read: (answer: unknown) => Result,
  failed: (cause: unknown) => Error,
): MaybePromise<Result> {
  let answer: MaybePromise<unknown>
  try {
    answer = ownPromise(ask(request))
  } catch (cause) {
    throw failed(cause)
  }
  if (!(answer instanceof Promise)) return read(answer)
  return answer.then(read, (cause) => {
    throw failed(cause)
  })
}

/**
 * Converts anything with a `then` into our own promise, as `await` does: a foreign `then` may throw, or call back
 * twice.
 */
function ownPromise(value: unknown): MaybePromise<unknown> {
  const mayHaveThen = (typeof value === 'object' && value !== null) || typeof value === 'function'
  return mayHaveThen && 'then' in value ? Promise.resolve(value) : value
}

/** A registered symbol, so that an ES module and a CommonJS copy of this file share it. */
const WITHOUT_BODY = Symbol.for('once-per-key.withoutBody')

/** Marks a `fingerprint` that does not use the body, so that nobody needs to have read the body. */
export function withoutBody<Req>(fingerprint: (request: Req) => unknown): (request: Req) => unknown {
  return Object.assign((request: Req) => fingerprint(request), { [WITHOUT_BODY]: true })
}

export function isWithoutBody(fingerprint: object): boolean {
  return WITHOUT_BODY in fingerprint
}
