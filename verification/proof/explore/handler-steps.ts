import { CertainFailure, type IdempotencyContext } from 'once-per-key/core'
import { LABELS, type Label, type Observed, type StepEnd } from './history.js'

/** The steps that a handler takes, one after the other. */
export interface HandlerSteps {
  /** So far, in their order. */
  readonly calls: readonly StepCall[]
  /** The one that comes next; `null`: one is under way, or none is left. */
  next(): Label | null
  take(context: IdempotencyContext, label: Label): void
  /** Whether the work of one is at the bank. */
  isWorking(): boolean
  /** That work ends. */
  end(how: StepEnd): void
}

/** Where a call stands. */
interface StepCall {
  readonly label: Label
  stage: 'asked' | 'working' | 'got' | 'failed'
}

/** What the work returns has more than JSON keeps: all attempts must go on with what it keeps. */
interface Result {
  readonly by: number
  readonly note?: undefined
}

export function handlerSteps(by: number, record: (what: Observed) => void): HandlerSteps {
  const calls: StepCall[] = []
  let settle: ((how: StepEnd) => void) | undefined

  const isWorking = () => calls.at(-1)?.stage === 'working'

  function work(call: StepCall, previousOutcome: 'none' | 'unknown'): Promise<Result> {
    call.stage = 'working'
    record({ type: 'step_called', by, label: call.label, previousOutcome })
    return new Promise((resolve, reject) => {
      settle = (how) => {
        record({ type: 'step_ended', by, label: call.label, end: how })
        if (how === 'done') resolve({ by, note: undefined })
        else reject(how === 'declined' ? new CertainFailure('declined') : new Error('no answer'))
      }
    })
  }

  return {
    calls,
    isWorking,
    next() {
      const last = calls.at(-1)
      if (last?.stage === 'asked' || last?.stage === 'working') return null
      return LABELS.find((label) => !calls.some((call) => call.label === label && call.stage === 'got')) ?? null
    },
    take(context, label) {
      const call: StepCall = { label, stage: 'asked' }
      calls.push(call)
      context
        .step<Result>(label, ({ previousOutcome }) => work(call, previousOutcome))
        .then(
          (result) => {
            call.stage = 'got'
            record({ type: 'step_got', by, label, result: result.by, isDecoded: !('note' in result) })
          },
          (error) => {
            call.stage = 'failed'
            record({ type: 'step_failed', by, label, code: error.code ?? 'thrown' })
          },
        )
    },
    end(how) {
      const settled = settle
      settle = undefined
      settled?.(how)
    },
  }
}
