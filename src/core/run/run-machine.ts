/**
 * What each event does to a run. Pure: the state and an event go in, the next state and the effects come out. `perform.ts` performs the
 * effects, and a proof walks this function directly.
 *
 * | state               | event                       | next                | effects                                          |
 * |---------------------|-----------------------------|---------------------|--------------------------------------------------|
 * | running             | answered                    | storing             | send `complete`                                  |
 * | running             | failed                      | failing             | stop the work; release, which says `steps over`  |
 * | running             | failed, and it is kept      | storing             | stop the work; send `complete`                   |
 * | running             | failed while a step runs    | failing             | stop the work; check the lease                   |
 * | running, by hand    | answered, failed            | verifying           | send `release`: its reply shows the transaction  |
 * | running             | commit unconfirmed          | verifying           | report it; send `release`                        |
 * | running             | committed                   | over                | report it, wake duplicates, end, tell `own`      |
 * | running             | lease over                  | running             | stop the work, end; nothing waits for its answer |
 * | storing             | ok                          | over                | report it, wake duplicates, end, tell `own`      |
 * | storing, releasing  | the record is another's     | over                | lose the lease, end, tell what the record says   |
 * | storing             | unanswered                  | pending             | report it, send again, check the lease           |
 * | releasing           | ok                          | over                | report it, end, tell `own`                       |
 * | releasing           | unanswered                  | pending             | send again, check the lease                      |
 * | failing             | lease checked: held         | failing             | tell `own`                                       |
 * | failing             | lease checked: not held     | failing             | renew; the reply decides what to tell            |
 * | failing             | steps over                  | releasing           | judge the failure; send `release`                |
 * | pending             | lease checked               | pending             | tell `own` if it is held, else `unconfirmed`     |
 * | pending             | a late reply, or given up   | over                | report it, end                                   |
 * | verifying           | its answer is in the record | over, or running    | tell the transaction, or the client              |
 * | verifying           | another reply, or given up  | over, or running    | report it, end, tell `unconfirmed`               |
 * | each but over       | lease lost                  | the same            | report it, stop the work, free the key           |
 *
 * What is not in the table changes nothing. The laws, whatever the order of events:
 * 1. A client is told once, and after the run was ended.
 * 2. *Seen is stored.* `own` is told of an answer only if the store has confirmed it, or if the lease is held and the options allow it.
 * 3. After `over` nothing is sent.
 * 4. A failure that may have had its effect is uncertain.
 */
import type { FailureReason } from '../events/events.js'
import { type Answer, type CommandReply, type IdempotencyRecord, isSameAnswer } from '../record/record.js'
import type {
  Failure,
  FailureKind,
  GivenFailure,
  In,
  OwnEnd,
  RunEffect,
  RunEvent,
  RunFacts,
  RunState,
} from './run-state.js'

export interface Transition {
  readonly state: RunState
  /** In order. What sends is the last one, since a synchronous store replies at once. */
  readonly effects: readonly RunEffect[]
}

export function next(state: RunState, event: RunEvent): Transition {
  if (event.type === 'known') return toTransition({ ...state, facts: { ...state.facts, ...event.facts } })
  if (state.phase === 'over') return toTransition(state)
  if (event.type === 'lease lost') return loseLease(state, event.reason)
  switch (state.phase) {
    case 'running':
      return onRunningEvent(state, event)
    case 'storing':
      return onStoringEvent(state, event)
    case 'failing':
      return onFailingEvent(state, event)
    case 'releasing':
      return onReleasingEvent(state, event)
    case 'pending':
      return onPendingEvent(state, event)
    case 'verifying':
      return onVerifyingEvent(state, event)
    default: // `unclaimed-machine.ts`
      return toTransition(state)
  }
}

export function toTransition(state: RunState, ...effects: readonly RunEffect[]): Transition {
  return { state, effects }
}

function onRunningEvent(state: In<'running'>, event: RunEvent): Transition {
  const { lease, facts, byHand } = state
  const hasFailed = event.type === 'failed'
  if (byHand !== null && (hasFailed || event.type === 'answered')) {
    return verify(state, byHand, true, hasFailed && event.isWithdrawn ? 'unconfirmed' : 'own')
  }
  switch (event.type) {
    case 'answered':
      return storeAnswer(state, event.answer, event.mustBeConfirmed)
    case 'failed': {
      // Stopped first, because a time limit may have responded while the handler still runs.
      if (event.kept !== null)
        return prependEffect(STOP, storeAnswer(state, event.kept.answer, event.kept.mustBeConfirmed))
      const { how, because } = event
      const end = event.isWithdrawn ? 'unconfirmed' : 'own'
      // It is judged when it is sent: what the stopped work does at once counts, and a step may be taken back until then.
      const then: RunEffect = { do: event.isInStep ? 'check lease' : 'release' }
      return toTransition({ phase: 'failing', lease, facts, how, because, end }, STOP, then)
    }
    case 'committed':
      return completeRun({ lease, facts }, event.answer, 'committed', { do: 'tell', end: 'own' })
    case 'commit unconfirmed':
      return prependEffect({ do: 'report', type: 'completion_pending' }, verify(state, event.answer, false, 'own'))
    case 'completed by hand':
      return toTransition({ ...state, byHand: event.answer })
    case 'lease over':
      return toTransition({ ...state, lease: 'gone' }, STOP, { do: 'end' }, { do: 'abandon' })
    default:
      return toTransition(state)
  }
}

export const STOP: RunEffect = { do: 'stop work', because: 'run_failed' }

export function prependEffect(first: RunEffect, { state, effects }: Transition): Transition {
  return { state, effects: [first, ...effects] }
}

/** A failure kept for retries is stored as an answer. */
export function storeAnswer({ lease, facts }: LastingState, answer: Answer, mustBeConfirmed: boolean): Transition {
  return toTransition({ phase: 'storing', lease, facts, answer, mustBeConfirmed }, { do: 'send complete', answer })
}

export type LastingState = Pick<RunState, 'lease' | 'facts'>

/** Judged when it is sent: a step may have been taken back until then. */
function release({ lease, facts }: LastingState, { how, because }: GivenFailure, end: OwnEnd | null): Transition {
  const failure = judgeFailure(facts, how, because)
  return toTransition({ phase: 'releasing', lease, facts, failure, end }, { do: 'send release', failure })
}

/**
 * Finds out how a transaction that completes the record ended. A release waits for the transaction while it is open, so its reply
 * is proof; a read would show the state before it.
 */
function verify({ lease, facts }: LastingState, answer: Answer, isByHand: boolean, end: OwnEnd): Transition {
  const failure = judgeFailure(facts, 'perhaps', 'no_answer')
  return toTransition({ phase: 'verifying', lease, facts, answer, isByHand, end }, { do: 'send release', failure })
}

/** An uncertain attempt stays uncertain, whatever its failure. */
export function judgeFailure(facts: RunFacts, how: FailureKind, because: FailureReason): Failure {
  if (facts.isEarlierUnknown) return { uncertain: true, because: 'earlier_attempt' }
  if (facts.mayHaveEffect || facts.hasStep) return { uncertain: true, because: 'may_have_effect' }
  if (how === 'certainly') return { uncertain: false, because }
  return facts.isDeclared ? { uncertain: false, because: 'declared' } : { uncertain: true, because }
}

function completeRun(
  lasting: LastingState,
  answer: Answer,
  how: In<'over'>['how'],
  ...told: readonly RunEffect[]
): Transition {
  return endRun(
    lasting,
    how,
    { do: 'report', type: 'completed', answer },
    { do: 'wake', answer },
    { do: 'end' },
    ...told,
  )
}

export function endRun({ facts }: LastingState, how: In<'over'>['how'], ...effects: readonly RunEffect[]): Transition {
  return toTransition({ phase: 'over', lease: 'gone', facts, how }, ...effects)
}

function onStoringEvent(state: In<'storing'>, event: RunEvent): Transition {
  const { lease, facts, answer, mustBeConfirmed } = state
  if (event.type === 'unanswered') {
    const pending: RunEffect[] = [
      { do: 'report', type: 'completion_pending' },
      { do: 'send again', isAwaited: false },
    ]
    const waits = { phase: 'pending', lease, facts, answer, failure: null } as const
    return mustBeConfirmed
      ? toTransition({ ...waits, end: null }, ...pending, { do: 'tell', end: 'unconfirmed' })
      : toTransition({ ...waits, end: 'own' }, ...pending, { do: 'check lease' })
  }
  if (event.type !== 'replied') return toTransition(state)
  if (event.reply.ok) return completeRun(state, answer, 'otherwise', { do: 'tell', end: 'own' })
  if (isAnothers(state, event.reply.record)) return endLostRun(state, event.reply.record, true)
  return endRun(
    state,
    'otherwise',
    { do: 'report', type: 'completion_pending' },
    { do: 'report', type: 'completion_given_up' },
    { do: 'end' },
    { do: 'tell', end: 'own' },
  )
}

/** An unprotected run has no record, so a failed one is nobody's. */
export function isAnothers({ facts }: LastingState, record: IdempotencyRecord | null): boolean {
  return facts.attempt > 0 || record?.state !== 'failed'
}

function endLostRun(state: RunState, record: IdempotencyRecord | null, tells: boolean): Transition {
  const lose = loseLease(state, 'taken').effects
  const tell: RunEffect[] = tells ? [{ do: 'tell as recorded', record }] : []
  return endRun(state, 'otherwise', ...lose, { do: 'end' }, ...tell)
}

function loseLease(state: RunState, reason: 'lapsed' | 'taken'): Transition {
  const lease = reason === 'taken' ? 'gone' : 'lapsed'
  if (state.lease !== 'held') return toTransition(state.lease === 'gone' ? state : { ...state, lease })
  const stop: RunEffect = { do: 'stop work', because: 'lease_lost' }
  return toTransition({ ...state, lease }, { do: 'report', type: 'lease_lost', reason }, stop, { do: 'free key' })
}

function onReleasingEvent(state: In<'releasing'>, event: RunEvent): Transition {
  const { lease, facts, failure, end } = state
  if (event.type === 'unanswered') {
    const again: RunEffect = { do: 'send again', isAwaited: false }
    return toTransition({ phase: 'pending', lease, facts, answer: null, failure, end }, again, { do: 'check lease' })
  }
  if (event.type !== 'replied') return toTransition(state)
  if (!event.reply.ok && isAnothers(state, event.reply.record))
    return endLostRun(state, event.reply.record, end !== null)
  const report: RunEffect[] = event.reply.ok ? [{ do: 'report', type: 'failed', failure }] : []
  return endRun(state, 'otherwise', ...report, { do: 'end' }, ...tellOnce(end))
}

function tellOnce(end: OwnEnd | null): RunEffect[] {
  return end === null ? [] : [{ do: 'tell', end }]
}

/** A renewal shows the record, and releases nothing. Once the steps are over, the reply to the release decides. */
function onFailingEvent(state: In<'failing'>, event: RunEvent): Transition {
  const { end } = state
  switch (event.type) {
    case 'lease checked':
      return state.lease === 'held'
        ? toTransition({ ...state, end: null }, ...tellOnce(end))
        : toTransition(state, { do: 'renew' })
    case 'renewed': {
      const { reply } = event
      if (end === null) return toTransition(state)
      if (reply === null) return toTransition({ ...state, end: null }, { do: 'tell', end: 'unconfirmed' })
      if (!reply.ok && isAnothers(state, reply.record)) return endLostRun(state, reply.record, true)
      return toTransition({ ...state, end: null }, { do: 'tell', end })
    }
    case 'steps over':
      return release(state, state, end)
    default:
      return toTransition(state)
  }
}

/** The client has its response, and the command is sent again for nobody. */
function onPendingEvent(state: In<'pending'>, event: RunEvent): Transition {
  const { answer, failure, end } = state
  switch (event.type) {
    case 'lease checked': // Without a lease what it says may be untrue: whoever took over may have sent another answer.
      if (end === null) return toTransition(state)
      return toTransition({ ...state, end: null }, { do: 'tell', end: state.lease === 'held' ? end : 'unconfirmed' })
    case 'replied': {
      const { reply } = event
      if (reply.ok && answer !== null) return completeRun(state, answer, 'otherwise')
      if (reply.ok)
        return endRun(state, 'otherwise', { do: 'report', type: 'failed', failure: failure as Failure }, { do: 'end' })
      return isAnothers(state, reply.record) ? endLostRun(state, reply.record, false) : giveUp(state)
    }
    case 'given up':
      return giveUp(state)
    default:
      return toTransition(state)
  }
}

function giveUp(state: In<'pending'>): Transition {
  const report: RunEffect[] = state.answer === null ? [] : [{ do: 'report', type: 'completion_given_up' }]
  return endRun(state, 'otherwise', ...report, { do: 'end' })
}

function onVerifyingEvent(state: In<'verifying'>, event: RunEvent): Transition {
  const { lease, facts, isByHand } = state
  if (event.type === 'unanswered') return toTransition(state, { do: 'send again', isAwaited: true })
  if (event.type === 'given up') {
    const unknown: RunEffect[] = isByHand ? [] : [{ do: 'tell transaction', outcome: 'unknown' }]
    const tell: RunEffect = { do: 'tell', end: 'unconfirmed' }
    return endRun(
      state,
      toEndKind(state),
      { do: 'report', type: 'completion_given_up' },
      { do: 'end' },
      tell,
      ...unknown,
    )
  }
  if (event.type !== 'replied') return toTransition(state)
  const answer = findOwnAnswer(event.reply, state.answer, facts.attempt)
  if (!isByHand) {
    const running = { phase: 'running', lease, facts, byHand: null } as const
    // Its record has failed or belongs to another attempt; the handler learns that when it responds.
    return answer === null
      ? toTransition({ ...running, lease: 'gone' }, STOP, { do: 'tell transaction', outcome: 'rolled back' })
      : toTransition(running, { do: 'tell transaction', outcome: 'committed' })
  }
  if (answer === null) {
    const tell: RunEffect = { do: 'tell', end: 'unconfirmed' }
    return endRun(state, 'by hand', { do: 'report', type: 'transaction_not_committed' }, { do: 'end' }, tell)
  }
  const tell: RunEffect = answer.body === null ? { do: 'tell', end: state.end } : { do: 'tell stored', answer }
  return completeRun(state, answer, 'by hand', tell)
}

function toEndKind({ isByHand }: In<'verifying'>): In<'over'>['how'] {
  return isByHand ? 'by hand' : 'otherwise'
}

/** The answer with which the record was completed, if this is it: an operator may have settled the same attempt with another. */
function findOwnAnswer(reply: CommandReply, given: Answer, attempt: number): Answer | null {
  if (reply.ok || reply.record?.state !== 'completed' || reply.record.attempt !== attempt) return null
  const { answer } = reply.record
  return answer !== null && isSameAnswer(answer, given) ? answer : null
}
