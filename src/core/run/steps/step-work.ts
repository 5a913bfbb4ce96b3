import { AsyncLocalStorage } from 'node:async_hooks'

/** Steps may run side by side, so nothing else tells which of them begin inside another one. */
const CALLED = new AsyncLocalStorage<StepWork>()

/**
 * The work of a step, while it is called. Whatever it starts runs in its async context, also when it is over: a job that starts the next
 * one in a step would keep every job before it, if those were not skipped.
 */
export class StepWork {
  /** The work inside which it is called. */
  around: StepWork | undefined = StepWork.current()
  isOver = false
  /** How many steps have begun inside it, or are about to, and were not taken back. */
  begun = 0

  /** The work inside which the caller runs, if it is not over. */
  static current(): StepWork | undefined {
    const current = StepWork.#running(CALLED.getStore())
    if (current !== undefined) current.around = StepWork.#running(current.around)
    return current
  }

  static #running(work: StepWork | undefined): StepWork | undefined {
    let found = work
    while (found?.isOver === true) found = found.around
    return found
  }

  async call<Result>(work: () => Result): Promise<Awaited<Result>> {
    try {
      return await CALLED.run(this, work)
    } finally {
      this.isOver = true
    }
  }
}

/** `around`: the work inside which a step is about to begin, or did not begin, or was taken back. */
export function countInside(around: StepWork | undefined, by: 1 | -1): void {
  for (let work = around; work !== undefined; work = work.around) work.begun += by
}
