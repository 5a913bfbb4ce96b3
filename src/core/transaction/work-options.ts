import type { StepOptions } from '../run/steps/step-in-hand.js'

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

/** Separates our option from the client's, which are left as they were without it. */
export function readAllowEmpty(options: unknown): { readonly allowEmpty: boolean; readonly clients: unknown } {
  if (typeof options !== 'object' || options === null || !('allowEmpty' in options)) {
    return { allowEmpty: false, clients: options }
  }
  const { allowEmpty, ...rest } = options
  return { allowEmpty: allowEmpty === true, clients: Object.keys(rest).length > 0 ? rest : undefined }
}

/** The client's options together with how the result of a step is converted. */
export type WithResult<Options, Result> = (Options extends object ? Options : object) & StepOptions<Result>

/** Separates our option from the client's, which are left as they were without it. */
export function readResult(options: unknown): { readonly codec: unknown; readonly clients: unknown } {
  if (typeof options !== 'object' || options === null || !('result' in options)) {
    return { codec: undefined, clients: options }
  }
  const { result, ...rest } = options
  return { codec: { result }, clients: Object.keys(rest).length > 0 ? rest : undefined }
}
