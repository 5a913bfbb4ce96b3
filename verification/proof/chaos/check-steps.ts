import { type At, type Claim, type Command, type KeyHistory, ownerOf, type StepNote } from './history.js'
import type { Verdicts } from './verdicts.js'

/** Checks what became of the steps of orders: S14, and of S5 that a failure after a step leaves the outcome unknown. */
export function checkSteps(history: KeyHistory, unknownOutcome: 'rerun' | 'refuse', verdicts: Verdicts): void {
  for (const note of history.steps) {
    if (note.what === 'step called') checkCalled(history, note, verdicts)
    if (note.what === 'step got') checkGot(history, note, verdicts)
  }
  checkCount(history, unknownOutcome, verdicts)
  for (const claim of history.claims) checkClaim(history, claim, verdicts)
}

type Called = At<Extract<StepNote, { what: 'step called' }>>
type Got = At<Extract<StepNote, { what: 'step got' }>>

function checkCalled(history: KeyHistory, call: Called, verdicts: Verdicts): void {
  const { label, attempt, told } = call
  const owner = ownerOf(history, call)
  const expect = (holds: boolean, wrong: string) => {
    verdicts.expectIfKept('S14', history, holds, () => `Attempt ${attempt} called ${label} ${wrong}`)
  }
  expect(hadRecorded(history, call, label, 'begun'), 'before that was recorded')

  for (const over of history.steps) {
    if (over.what !== 'step over' || over.attempt !== attempt || over.process !== call.process || over.at > call.at)
      continue
    expect(hadRecorded(history, call, over.label, 'done'), `before the result of ${over.label} was recorded`)
  }

  const earlier = callsOf(history, label).filter((each) => each.attempt < attempt)
  if (told === 'none')
    expect(earlier.length === 0, `as a new step, although attempt ${earlier[0]?.attempt} had called it`)
  else {
    const began = commandsOf(history, label, 'begun').some(({ token }) => token !== owner?.token)
    expect(began, "and was told 'unknown', although nobody had begun it")
  }
  const recorded = commandsOf(history, label, 'done').find(
    (each) => each.token !== owner?.token && isDone(each) && each.repliedAt <= (owner?.sentAt ?? 0),
  )
  expect(recorded === undefined, 'although its result had been recorded')
}

/** A result is that of a call, and the last one that was recorded before, unless it is the run's own. */
function checkGot(history: KeyHistory, got: Got, verdicts: Verdicts): void {
  const { label, attempt, id } = got
  const calls = callsOf(history, label)
  const own = calls.find((call) => call.attempt === attempt && call.process === got.process)
  const made = own === undefined ? calls.some((call) => call.id === id && call.attempt < attempt) : own.id === id
  verdicts.expectIfKept(
    'S14',
    history,
    made,
    () => `Attempt ${attempt} got a result of ${label} that is not its own: ${id}`,
  )
  const later = history.steps.find(
    (each) => each.what === 'step got' && each.label === label && each.attempt > attempt && each.id !== id,
  )
  const stored = hadRecorded(history, got, label, 'done')
  verdicts.expectIfKept('S14', history, !stored || later === undefined, () => {
    return `Attempt ${attempt} had recorded the result of ${label}, and attempt ${later?.attempt} got another`
  })
}

/** Each call follows a claim that was told of the crash; where unknown outcomes are refused, there is none. */
function checkCount(history: KeyHistory, unknownOutcome: 'rerun' | 'refuse', verdicts: Verdicts): void {
  const takeovers = history.claims.filter(({ previousOutcome }) => previousOutcome === 'unknown').length
  const most = unknownOutcome === 'rerun' ? 1 + takeovers : 1
  for (const label of new Set(history.steps.map((note) => note.label))) {
    const count = callsOf(history, label).length
    verdicts.expectIfKept('S5', history, count <= most, () => `${count} calls of ${label}, and ${takeovers} takeovers`)
  }
}

function checkClaim(history: KeyHistory, claim: Claim, verdicts: Verdicts): void {
  if (claim.previousOutcome === 'unknown') return
  const called = history.steps.find((note) => {
    return note.what === 'step called' && note.attempt < claim.attempt && note.at < claim.sentAt
  })
  verdicts.expectIfKept('S5', history, called === undefined, () => {
    return `Attempt ${claim.attempt} was told "${claim.previousOutcome}", but attempt ${called?.attempt} had called ${called?.label}`
  })
}

/** Whether the run of a note had a confirmed command by then: a lost reply makes copies, and any of them counts. */
function hadRecorded(history: KeyHistory, note: Called | Got, label: string, state: 'begun' | 'done'): boolean {
  const owner = ownerOf(history, note)
  return commandsOf(history, label, state).some(
    (each) => each.token === owner?.token && isDone(each) && each.repliedAt <= note.at,
  )
}

function callsOf({ steps }: KeyHistory, label: string): Called[] {
  return steps.filter((note): note is Called => note.what === 'step called' && note.label === label)
}

function commandsOf({ commands }: KeyHistory, label: string, state: string): Command[] {
  return commands.filter(({ step }) => step?.label === label && step.state === state)
}

function isDone({ reply }: Command): boolean {
  return reply?.outcome === 'ok'
}
