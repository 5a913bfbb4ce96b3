import type { BeginReply, Step } from 'once-per-key/core'
import type { Command, Executed, Label, StepSeen } from './history.js'
import type { Expect } from './invariants.js'
import { type Book, isTakenBack, type Ledger, noSteps, type Standing, type StepPart } from './ledger.js'

/** Law 8, where a handler meets its steps. */
export function watchStep(ledger: Ledger, book: Book, standing: Standing, seen: StepSeen, expect: Expect): void {
  const { by, run, now } = standing
  if (run === null) return
  const { label } = seen
  switch (seen.type) {
    case 'step_called': {
      const call: StepPart = { label, told: seen.previousOutcome, end: null, isRecorded: false }
      if (now.ran) watchCall(ledger, book, standing, call, expect)
      run.steps.push(call)
      if (now.ran) now.steps.push(call)
      break
    }
    case 'step_ended': {
      const call = run.steps.findLast((each) => each.label === label)
      if (call !== undefined) call.end = seen.end
      break
    }
    case 'step_got': {
      const isOwn = run.steps.some((each) => each.label === label && each.end === 'done')
      expect('S14', seen.isDecoded, `request ${by} gets another result of ${label} than an attempt after it`)
      if (isOwn) expect('S14', seen.result === by, `request ${by} gets the result of ${label} of another`)
      else if (now.ran) {
        const isRecorded = book.steps.results[label] === seen.result
        expect('S14', isRecorded, `request ${by} gets a result of ${label} that is not the one that was recorded`)
      }
    }
  }
}

/** The work of a step is called. */
function watchCall(ledger: Ledger, book: Book, standing: Standing, call: StepPart, expect: Expect): void {
  const { by, scope, run } = standing
  const { label, told } = call
  const marks = book.steps.marks[label] ?? {}
  expect('S14', book.steps.results[label] === undefined, `request ${by} calls ${label}, whose result is recorded`)
  expect('S14', marks[by] === 'begun', `request ${by} calls ${label} before that is recorded`)
  if (told === 'none') {
    const parts = ledger.standings.filter((each) => each.scope === scope).flatMap(({ now }) => now.steps)
    const isFresh = parts.every((part) => part.label !== label || isTakenBack(part))
    expect('S14', isFresh, `request ${by} is told 'none' of ${label}, which was begun before`)
  } else {
    const isMarked = Object.entries(marks).some(([who, mark]) => who !== `${by}` && mark === 'begun')
    const isOwn = run?.steps.some((each) => each.label === label && !isTakenBack(each))
    expect('S14', isMarked || isOwn === true, `request ${by} is told 'unknown' of ${label}, which nobody has begun`)
  }
}

/** A claim is granted: it is told the recorded steps, and no others. */
export function watchTold(
  book: Book,
  by: number,
  { steps = [] }: Extract<BeginReply, { acquired: true }>,
  expect: Expect,
): void {
  const { results, marks } = book.steps
  for (const label of new Set([...labelsOf(results), ...labelsOf(marks), ...steps.map((step) => step.label)])) {
    const step = steps.find((each) => each.label === label)
    const result = results[label as Label]
    const isBegun = Object.values(marks[label as Label] ?? {}).includes('begun')
    const due = result !== undefined ? `done by ${result}` : isBegun ? 'begun' : 'nothing'
    const seen = step === undefined ? 'nothing' : inWords(step)
    expect('S14', due === seen, `request ${by} is told ${seen} of ${label}, where the record has ${due}`)
  }
}

function inWords({ state, result }: Step): string {
  return state === 'done' ? `done by ${resultOf(result)}` : state
}

export function resultOf(result: Uint8Array | null): number {
  return result === null ? -1 : JSON.parse(Buffer.from(result).toString()).by
}

function labelsOf(of: object): string[] {
  return Object.keys(of)
}

/** An owner's command has changed the record. */
export function watchStepRecorded(
  book: Book,
  standing: Standing,
  own: Extract<Command, { name: 'step' }>['own'],
  expect: Expect,
): void {
  const { by, run } = standing
  const label = own.label as Label
  const calls = run?.steps ?? []
  const marks = book.steps.marks[label] ?? {}
  book.steps.marks[label] = marks
  switch (own.state) {
    case 'begun': {
      marks[by] = 'begun'
      const isBehind = calls.every(({ end, isRecorded }) => end !== 'done' || isRecorded)
      expect('S14', isBehind, `request ${by} begins ${label} before the result of an earlier step is recorded`)
      break
    }
    case 'undone': {
      const last = calls.findLast((each) => each.label === label)
      const mayBe = last !== undefined && isTakenBack(last)
      expect('S14', mayBe, `request ${by} takes a beginning of ${label} back that may have had its effect`)
      marks[by] = 'undone'
      break
    }
    case 'done':
      book.steps.results[label] = resultOf(own.result)
      for (const call of calls) if (call.label === label && call.end === 'done') call.isRecorded = true
  }
}

/** An owner has failed: no step of its is at the bank, and each result is recorded. */
export function watchReleased(book: Book, standing: Standing, { before }: Executed, expect: Expect): void {
  const { by, run } = standing
  const calls = run?.steps ?? []
  expect(
    'S14',
    calls.every(({ end }) => end !== null),
    `request ${by} is released while a step is at the bank`,
  )
  const done = calls.filter(({ end }) => end === 'done')
  expect(
    'S14',
    done.every(({ isRecorded }) => isRecorded),
    `request ${by} is released before the result of a step is recorded`,
  )
  if (before === null) return
  const isWhole = done.every(({ label }) => book.steps.results[label] !== undefined)
  expect('S14', isWhole, `request ${by} is released, and its record, which was restored, has lost results`)
}

/** The record has none from now on. */
export function dropSteps(book: Book): void {
  book.steps = noSteps()
}
