import { AsyncLocalStorage } from 'node:async_hooks'

/** Steps may run side by side, so nothing else tells which of them begin inside another one. */
const CALLED = new AsyncLocalStorage<StepWork>()

/** The work of a step, while it is called. */
export class StepWork {
  /** The work inside which it is called. */
  readonly around: StepWork | undefined = StepWork.current()
  /** How many steps have begun inside it, or are about to, and were not taken back. */
  begun = 0

  /** The work inside which the caller runs. */
  static current(): StepWork | undefined {
    return CALLED.getStore()
  }

  call<Result>(work: () => Result): Result {
    return CALLED.run(this, work)
  }
}

/** `around`: the work inside which a step is about to begin, or did not begin, or was taken back. */
export function countInside(around: StepWork | undefined, by: 1 | -1): void {
  for (let work = around; work !== undefined; work = work.around) work.begun += by
}
