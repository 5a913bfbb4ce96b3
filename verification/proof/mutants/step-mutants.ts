/** Faults of steps; each stands for a sentence of the contract. */
import type { Mutant } from './mutant.js'

type Planted = Omit<Mutant, 'layer' | 'scale'>

/** They show themselves as soon as one attempt follows another. */
export const stepsInPeace: readonly Planted[] = [
  {
    name: 'the order of a dead owner stands in the way of the next',
    find: '.map((step) => ({ ...step, order: 0 }))',
    replace: '',
    check: 'S14',
  },
  {
    name: 'a takeover forgets the steps',
    find: 'return acquire(claim, record.attempt + 1, true, now, toNextOwnersSteps(record.steps))',
    replace: 'return acquire(claim, record.attempt + 1, true, now)',
    check: 'S14',
  },
  {
    name: 'an uncertain failure forgets the steps',
    find: "uncertain && record?.state === 'in-flight' ? record.steps : undefined",
    replace: "own.attempt < 0 && record?.state === 'in-flight' ? record.steps : undefined",
    check: 'S14',
  },
  {
    name: 'the mark of a step comes after its call',
    find: 'await this.#recordBeginning(label, known)',
    replace: 'void this.#recordBeginning(label, known).catch(() => {})',
    check: 'S14',
  },
  {
    name: 'the mark of a dead attempt is taken back',
    find: "isCertainFailure(error) && previousOutcome === 'none' && isAlone",
    replace: 'isCertainFailure(error) && isAlone',
    check: 'S14',
  },
  {
    name: 'a failure while a step is at the bank is released at once',
    find: 'const isInStep = this.#steps?.areSettled === false && getMonotonicMs() < this.lease.until',
    replace: 'const isInStep = this.#steps?.areSettled === false && getMonotonicMs() < 0',
    check: 'S14',
  },
  {
    name: 'the first caller of a step gets its result as it was returned',
    find: 'return encoded.value',
    replace: 'return value',
    check: 'S14',
  },
  {
    name: 'a step is called although its result is recorded',
    find: "if (known.state === 'recorded') return this.#resume(label, known, given.codec)",
    replace: '',
    check: 'S14',
  },
  {
    name: 'a step that has left no result is told as new',
    find: "const previousOutcome = known.state === 'begun' ? 'unknown' : 'none'",
    replace: "const previousOutcome = known.state === 'begun' ? 'none' : 'none'",
    check: 'S14',
  },
  {
    name: 'a step that has begun does not count as an effect',
    find: 'this.#run.mergeFacts({ hasStep: this.#begun > 0 })',
    replace: 'this.#run.mergeFacts({ hasStep: false })',
    check: 'S5',
  },
]

/** They take a fault, steps side by side, or a long time. */
export const stepsInTrouble: readonly Planted[] = [
  {
    name: 'a late command takes the new mark of a step away',
    find: 'if (before !== undefined && before.order > order) return null',
    replace: '',
    check: 'S14',
  },
  {
    name: 'a begin that is sent again forgets the steps',
    find: 'reply: createAcquiredReply(record.attempt, record.uncertain, record.steps)',
    replace: 'reply: createAcquiredReply(record.attempt, record.uncertain)',
    check: 'S14',
  },
  {
    name: 'an owner that was taken over records a step',
    find: `if (record.token !== own.token || record.state === 'failed') return createStaleChange(record, now, own)
  if (record.state === 'completed') return own.state`,
    replace: `if (record.state === 'failed') return createStaleChange(record, now, own)
  if (record.state === 'completed') return own.state`,
    check: 'S6',
  },
  {
    name: 'a late result opens a completed record again',
    find: "return own.state === 'begun' ? createStaleChange(record, now, own) : { record, reply: OK }",
    replace: 'return { record: createClaimedRecord(own, own.attempt, true, now), reply: OK }',
    check: 'S4',
  },
  {
    name: 'a later step is recorded over an earlier one that is not',
    find: 'if (!this.#areConfirmed) await this.#waitForConfirmations()',
    replace: '',
    check: 'S14',
  },
  {
    name: 'a result that was not confirmed is not sent again',
    find: 'if (reply === null && isRepeated) this.#sendAgain(sent, call)',
    replace: '',
    check: 'S14',
  },
  {
    name: 'a result that has to be sent again counts as confirmed',
    find: "while (first !== 'late' && this.#onTheirWay.size > 0) {",
    replace: 'if (this.#onTheirWay.size > 0) {',
    check: 'S14',
  },
  {
    name: 'steps outlive the retention of their record',
    find: 'if (record === null) return acquire(claim, 1, false, now)',
    replace: `if (record === null) {
      const old = stored === null || stored.state === 'completed' ? undefined : stored.steps
      return acquire(claim, 1, false, now, toNextOwnersSteps(old))
    }`,
    check: 'S14',
  },
  {
    name: 'a step that waits for a result keeps the process alive',
    find: "this.#core.options.storeTimeoutMs, 'late').unref()",
    replace: "this.#core.options.storeTimeoutMs, 'late')",
    check: 'L3',
  },
]
