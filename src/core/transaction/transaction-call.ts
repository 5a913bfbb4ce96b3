import type { IdempotencyError } from '../errors.js'
import { transactionTimedOutError } from '../misuse.js'
import type { StepOptions } from '../run/step.js'

/** One call by the client, which may go on when the client has stopped waiting for it. */
export class WorkCall {
  /** Resolves when nothing of it runs. */
  readonly settled: Promise<void>
  #running = 0
  #resolve!: () => void

  constructor() {
    this.settled = new Promise((resolve) => {
      this.#resolve = resolve
    })
  }

  get isRunning(): boolean {
    return this.#running > 0
  }

  /** Settles as `part` does, which is counted until then. */
  trackPart<Value>(part: () => Promise<Value>): Promise<Value> {
    this.#running++
    const running = part()
    const over = () => {
      if (--this.#running === 0) this.#resolve()
    }
    running.then(over, over)
    return running
  }
}

/**
 * Settles as a statement inside a transaction does; rejects if the database does not answer it in time, because it may never
 * answer. `onLate` is called first.
 *
 * @throws IdempotencyError `transaction_timed_out`
 */
export async function limitStatement<Value>(
  limitMs: number,
  statement: Promise<Value>,
  onLate: (error: IdempotencyError) => void,
): Promise<Value> {
  let timer: ReturnType<typeof setTimeout> | undefined
  const late = new Promise<never>((_resolve, reject) => {
    timer = setTimeout(() => {
      const error = transactionTimedOutError(`The database did not answer within ${limitMs} ms (storeTimeoutMs)`)
      onLate(error)
      reject(error)
    }, limitMs)
  })
  return Promise.race([statement, late]).finally(() => clearTimeout(timer))
}

/** The mark was gone before the completion, or the client told of a COMMIT before it, as Knex does if the work calls `trx.commit()`. */
export function isEndByWork(error: unknown): boolean {
  const code = (error as { readonly code?: unknown } | null)?.code
  return code === 'transaction_unmarked' || code === 'transaction_not_run'
}

/** Waiting for the client of a transaction, until it has settled or nobody waits for it any longer. */
export class ClientWait {
  /** Why nobody waits any longer; `undefined`: somebody does. */
  givenUp: IdempotencyError | undefined
  #onGivenUp: (() => void) | undefined

  /** The first reason counts. */
  giveUp(error: IdempotencyError): void {
    this.givenUp ??= error
    this.#onGivenUp?.()
  }

  /** Settles as the client does, or rejects when nobody waits any longer. */
  waitUntilGivenUp<Value>(client: Promise<Value>): Promise<Value> {
    const givenUp = new Promise<never>((_resolve, reject) => {
      this.#onGivenUp = () => reject(this.givenUp)
    })
    if (this.givenUp !== undefined) this.#onGivenUp?.()
    return Promise.race([client, givenUp])
  }
}

/** The option of a store's `transaction` that is ours, beside those of its client, which never receives it. */
export interface AllowEmpty {
  /**
   * Whether the transaction may commit although nothing was written in it: for an operation that may have nothing to write, such as an
   * UPDATE that matches no row in a later attempt. By default it is rolled back with `nothing_written`, since the writes probably went
   * over the pool because `tx` was forgotten.
   * @default false
   */
  readonly allowEmpty?: boolean | undefined
}

/** The client's options together with ours; where the client's are no object, one of them at a time. */
export type WithAllowEmpty<Options> = Options extends object ? Options & AllowEmpty : Options | AllowEmpty

export function readAllowEmpty(options: unknown): { readonly allowEmpty: boolean; readonly clients: unknown } {
  const { own, clients } = separateOption(options, 'allowEmpty')
  return { allowEmpty: own === true, clients }
}

/** The client's options together with how the result of a step is converted. */
export type WithResult<Options, Result> = (Options extends object ? Options : object) & StepOptions<Result>

export function readResult<Options>(options: unknown): {
  readonly codec: unknown
  readonly clients: Options | undefined
} {
  const { own, clients } = separateOption(options, 'result')
  return { codec: { result: own }, clients: clients as Options | undefined }
}

/** Separates our option from the client's, which are left as they were without it. */
function separateOption(options: unknown, name: string): { readonly own: unknown; readonly clients: unknown } {
  if (typeof options !== 'object' || options === null || !(name in options)) return { own: undefined, clients: options }
  const { [name]: own, ...rest } = options as Readonly<Record<string, unknown>>
  return { own, clients: Object.keys(rest).length > 0 ? rest : undefined }
}
