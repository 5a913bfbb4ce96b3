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

/** Is told a value, or an error, once: what was not told yet is a promise. */
export class Promised<Value> {
  #value: Value | undefined = undefined
  #error: { readonly thrown: unknown } | undefined = undefined
  #resolve: ((value: Value) => void) | undefined = undefined
  #reject: ((error: unknown) => void) | undefined = undefined

  protected tell(value: Value): void {
    this.#value = value
    this.#resolve?.(value)
  }

  protected tellError(error: unknown): void {
    this.#error = { thrown: error }
    this.#reject?.(error)
  }

  /** Throws the error, or rejects with it. */
  get told(): MaybePromise<Value> {
    if (this.#error !== undefined) throw this.#error.thrown
    return (
      this.#value ??
      new Promise((resolve, reject) => {
        this.#resolve = resolve
        this.#reject = reject
      })
    )
  }
}
