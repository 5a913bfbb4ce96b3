import { Buffer } from 'node:buffer'
import type { BeginReply } from 'once-per-key/core'
import type { Evidence } from './evidence.js'
import type { Arrival, Command, Observation, Request, Run } from './history.js'
import type { Ledger } from './ledger.js'

/** S14, where a claim is granted: it is told the steps of the record, and no others. */
export function checkTold(
  { expect }: Evidence,
  request: Request,
  { steps = [] }: Extract<BeginReply, { acquired: true }>,
  ledger: Ledger,
  isRepeated: boolean,
): void {
  const { steps: recorded } = ledger.life()
  const due = [...recorded]
    .filter(([, { state }]) => state !== 'undone')
    .map(([label, step]) => `${label} ${step.text}`)
  const seen = steps.map(({ label, state, result }) => `${label} ${textOf(state, result)}`)
  const isSame = due.sort().join() === seen.sort().join()
  expect('S14', isSame, request, `a claim is told the steps ${seen.join()}, where the record has ${due.join()}`)
  // For the next owner what was taken back has never begun; its own owner may hear late of a mark that it has taken back.
  if (isRepeated) return
  for (const [label, { state }] of recorded) if (state === 'undone') recorded.delete(label)
}

function textOf(state: string, result: Uint8Array | null): string {
  return state === 'done' ? `done ${result && Buffer.from(result).toString()}` : state
}

/** A step is recorded in its owner's record, unless a later command for its label came before it. Says whether it was. */
export function recordStep({ tally, expect, ledgerOf, attemptOf }: Evidence, { command }: Arrival): boolean {
  const { request, terms, sentAt } = command
  const { label = '', order = 0, state = 'begun', result = null, token } = terms
  const { steps } = ledgerOf(request).life()
  const before = steps.get(label)
  if (before?.state === 'done' || (before?.token === token && before.order > order)) {
    tally['late commands of steps']++
    return false
  }
  steps.set(label, { token, order, state, text: textOf(state, result) })
  const calls = request.run?.steps ?? []
  if (state === 'done')
    for (const call of calls) if (call.label === label && call.end === 'done') call.isRecorded = true
  const { marks, markedIn } = attemptOf(request)
  if (state === 'begun') markedIn.set(label, ledgerOf(request).epoch)
  if (state === 'begun' && !marks.has(order)) {
    marks.add(order)
    const isBehind = calls.every((call) => call.end !== 'done' || call.endedAt >= sentAt || call.isRecorded)
    expect('S14', isBehind, request, `${label} begins before the result of an earlier step is recorded`)
  }
  return true
}

/** Its record belongs to another: its result can be kept nowhere. */
export function refuseStep({ request, terms }: Command): void {
  if (terms.state !== 'done') return
  for (const call of request.run?.steps ?? []) if (call.label === terms.label) call.isRecorded = true
}

/** A failure is released: nothing of its run is at the bank, and what it made is recorded, unless its time is over. */
export function checkReleasedSteps({ setting, expect, attemptOf }: Evidence, { request, sentAt }: Command): void {
  const { claimSentAt } = attemptOf(request)
  if (claimSentAt === null || sentAt >= claimSentAt + setting.options.maxRunMs) return
  // An unprotected run records nothing.
  const calls = request.run?.attempt === 0 ? [] : (request.run?.steps ?? [])
  const areOver = calls.every(({ end }) => end !== null)
  expect('S14', areOver, request, 'a run is released while a step of it is at the bank')
  const areRecorded = calls.every(({ end, isRecorded }) => end !== 'done' || isRecorded)
  expect('S14', areRecorded, request, 'a run is released before the result of a step is recorded')
}

/** What a handler sees of its steps. */
export function checkStep(evidence: Evidence, seen: Called | Got): void {
  if (seen.type === 'step called') checkCalled(evidence, seen)
  else checkGot(evidence, seen)
}

type Called = Extract<Observation, { type: 'step called' }>
type Got = Extract<Observation, { type: 'step got' }>

function checkCalled({ expect, ledgerOf, attemptOf }: Evidence, { run, call }: Called): void {
  const { request } = run
  const { label, told } = call
  const ledger = ledgerOf(request)
  // An unprotected run records nothing, and a record that was lost says nothing.
  const { epoch, markedIn } = attemptOf(request)
  if (run.attempt === 0 || epoch !== ledger.epoch || (markedIn.get(label) ?? epoch) !== epoch) return
  const life = ledger.life()
  const step = life.steps.get(label)
  expect('S14', step?.state !== 'done', request, `${label} is called, although its result is recorded`)
  const isMarked = step?.state === 'begun' && step.token === request.token
  expect('S14', isMarked, request, `${label} is called before that is recorded`)
  if (told === 'none') {
    const isFresh = life.calls.every((each) => each.label !== label || each.isTakenBack)
    expect('S14', isFresh, request, `${label} is told 'none', although it was called before`)
  } else {
    const isOwn = run.steps.some((each) => each !== call && each.label === label && !each.isTakenBack)
    const isToldSo = toldOf(run).some((each) => each.label === label && each.state === 'begun')
    expect('S14', isOwn || isToldSo, request, `${label} is told 'unknown', although nobody has begun it`)
  }
  life.calls.push(call)
}

function checkGot({ tally, expect }: Evidence, { run, label, from, isDecoded }: Got): void {
  const { request } = run
  expect('S14', isDecoded, request, `the first to get the result of ${label} gets another than those after it`)
  if (from === run.id) return
  tally['resumed steps']++
  const isTold = toldOf(run).some(({ label: each, state, result }) => {
    return (
      each === label && state === 'done' && result !== null && JSON.parse(Buffer.from(result).toString()).run === from
    )
  })
  expect('S14', isTold, request, `${label} has a result that the record did not have`)
}

/** The steps that the run was told when it was claimed. */
function toldOf({ request }: Run) {
  const reply = request.heard?.reply
  return reply !== undefined && 'acquired' in reply && reply.acquired ? (reply.steps ?? []) : []
}
