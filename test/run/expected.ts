/** How a function ends: it returns, its result cannot be kept, or it throws in one of four ways. */
export type Ending = 'returns' | 'unkept' | 'throws' | 'certain' | 'judged' | 'declared'

export interface Call {
  /** Two runners of one name, one of which refuses unknown outcomes; and one of another name. */
  readonly by: 'rerunner' | 'refuser' | 'stranger'
  readonly scope: string
  readonly key: string
  readonly input: number
  readonly number: number
  readonly isAborted: boolean
}

/** Attempt and previous outcome, as the function was told. */
type Told = readonly [attempt: number, previousOutcome: string]

export type HeldCall = Call & { readonly told?: Told | undefined }

export type Outcome =
  | { readonly kind: 'held'; readonly told: Told }
  | { readonly kind: 'result'; readonly value: unknown; readonly told?: Told }
  | { readonly kind: 'thrown'; readonly told?: Told }
  | { readonly kind: 'refused'; readonly code: string; readonly told?: Told }

type Known =
  | {
      state: 'in-flight'
      input: number
      attempt: number
      isUncertain: boolean
      hasLapsed: boolean
      owner: number
    }
  | { state: 'completed'; input: number; attempt: number; result: { value: unknown } | null }
  | { state: 'failed'; input: number | null; attempt: number; isUncertain: boolean }

/** SPEC's table of the states, told of runners: what each call must give. */
export class Expected {
  readonly #records = new Map<string, Known>()

  /** Every lease that is not renewed ends. */
  lapse(): void {
    for (const record of this.#records.values()) if (record.state === 'in-flight') record.hasLapsed = true
  }

  begin(call: Call): Outcome {
    if (call.isAborted) return { kind: 'thrown' }
    const record = this.#records.get(nameOf(call))
    if (record === undefined) return this.#claim(call, 1, 'none')
    const isBound = record.state !== 'failed' || record.isUncertain
    if (isBound && record.input !== call.input) return { kind: 'refused', code: 'mismatched' }
    if (record.state === 'completed') return resultOf(record)
    if (record.state === 'in-flight' && !record.hasLapsed) return { kind: 'refused', code: 'in_flight' }
    if (!isBound) return this.#claim(call, record.attempt + 1, 'failed')
    if (call.by === 'refuser') return { kind: 'refused', code: 'outcome_unknown' }
    return this.#claim(call, record.attempt + 1, 'unknown')
  }

  end(call: HeldCall, ending: Ending): Outcome {
    const told = call.told && { told: call.told }
    const name = nameOf(call)
    const record = this.#records.get(name)
    const isOwner = record?.state === 'in-flight' && record.owner === call.number
    const returns = ending === 'returns' || ending === 'unkept'
    if (!returns) {
      if (isOwner) this.#records.set(name, failed(record, ending))
      return { kind: 'thrown', ...told }
    }
    if (!isOwner) return { ...ofAnother(record), ...told }
    const { input, attempt } = record
    const result = ending === 'returns' ? { value: { number: call.number } } : null
    this.#records.set(name, { state: 'completed', input, attempt, result })
    return { kind: 'result', value: result === null ? [call.number] : result.value, ...told }
  }

  #claim(call: Call, attempt: number, previousOutcome: string): Outcome {
    const isUncertain = previousOutcome === 'unknown'
    const { input, number: owner } = call
    this.#records.set(nameOf(call), { state: 'in-flight', input, attempt, isUncertain, hasLapsed: false, owner })
    return { kind: 'held', told: [attempt, previousOutcome] }
  }
}

function failed({ input, attempt, isUncertain }: Known & { state: 'in-flight' }, ending: Ending): Known {
  const isOpen = isUncertain || ending === 'throws' || ending === 'declared'
  return { state: 'failed', input: isOpen ? input : null, attempt, isUncertain: isOpen }
}

/** What somebody gets who has lost the lease: the result, or the advice to ask again. */
function ofAnother(record: Known | undefined): Outcome {
  if (record?.state === 'completed') return resultOf(record)
  return { kind: 'refused', code: 'in_flight' }
}

function resultOf({ result }: Known & { state: 'completed' }): Outcome {
  return result === null ? { kind: 'refused', code: 'answer_not_kept' } : { kind: 'result', value: result.value }
}

function nameOf({ by, scope, key }: Call): string {
  return `${by === 'stranger' ? 'mail' : 'jobs'}/${scope}/${key}`
}
