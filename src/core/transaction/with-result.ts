import type { StepOptions } from '../run/steps/step-in-hand.js'

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
