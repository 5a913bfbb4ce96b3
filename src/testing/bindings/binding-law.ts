import type { BindingBench } from './binding-bench.js'

/** What a framework is like, where frameworks differ. */
export interface BindingLawsOptions {
  /**
   * The framework joins header lines of one name, as Fetch does: two keys cannot be told from one with a comma in it.
   * @default false
   */
  readonly joinsHeaderLines?: boolean

  /**
   * An application has no error handler behind the library: what a handler throws is answered by the server.
   * @default false
   */
  readonly hasNoErrorHandler?: boolean

  /**
   * The binding never sees what a handler throws, only what the application answers, so a `CertainFailure` cannot be
   * recognised.
   * @default false
   */
  readonly hidesErrors?: boolean

  /**
   * The binding reads request bodies itself, up to 1 MiB unless told otherwise, and refuses longer ones.
   * @default false
   */
  readonly readsBodies?: boolean
}

/** One promise of a binding, and its check. */
export interface BindingLaw {
  /** A sentence that begins with the name of its law. */
  readonly name: string
  /** Whether it holds for such a framework; absent: for every one. */
  readonly holds?: (framework: BindingLawsOptions) => boolean
  readonly check: (bench: BindingBench) => Promise<void>
}

export function bindingLawsOf(
  laws: Readonly<Record<string, BindingLaw['check']>>,
  holds: BindingLaw['holds'] = () => true,
): BindingLaw[] {
  return Object.entries(laws).map(([name, check]) => ({ name, holds, check }))
}
