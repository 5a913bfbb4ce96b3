/**
 * What each event does to a run that claims nothing beforehand (`effects: 'in-transaction'`). Its key was looked at, and its transaction
 * takes the key, does the work and completes the record. So a failure needs no record, and a run that dies leaves nothing. In exchange, nothing
 * that it answers outside of a transaction is sent before the key was looked at once more (`fence`): a retry that has read its own
 * first attempt's effects must not be refused where that one succeeded.
 *
 * | state                        | event                          | next        | effects                                   |
 * |------------------------------|--------------------------------|-------------|-------------------------------------------|
 * | running                      | answered                       | withholding | send `withhold`                           |
 * | running, its key is taken    | answered                       | fencing     | send `fence`                              |
 * | running                      | failed                         | fencing     | stop the work; send `fence`               |
 * | running, may be committed    | failed                         | withholding | stop the work; send `withhold`            |
 * | fencing                      | no reply, or something prevents | over       | refuse as the record says, end            |
 * | fencing                      | nothing prevents               | over        | report the failure, end, tell `own`       |
 * | fencing, the failure is kept | nothing prevents               | claiming    | send `begin`                              |
 * | claiming                     | acquired                       | storing     | report the claim; send `complete`         |
 * | claiming                     | not acquired                   | over        | refuse as the record says, end            |
 * | claiming                     | no reply                       | letting go  | tell `unconfirmed`; send `release`        |
 * | letting go                   | a reply, or given up           | over        | end                                       |
 * | withholding                  | ok, or nothing prevents        | over        | report the failure, end, tell             |
 * | withholding                  | a record prevents              | over        | refuse as the record says, end            |
 * | withholding                  | no reply, or a transaction has the key | withholding | tell, send `withhold` again       |
 */
import type { FailureReason } from '../events/events.js'
import type { Fenced } from '../record/looked.js'
import type { BeginReply, IdempotencyRecord } from '../record/record.js'
import {
  endRun,
  judgeFailure,
  type LastingState,
  next,
  prependEffect,
  STOP,
  storeAnswer,
  type Transition,
  toTransition,
} from './run-machine.js'
import type { Failure, In, KeptFailure, OwnEnd, RunEffect, RunEvent, RunState } from './run-state.js'

export function nextUnclaimed(state: RunState, event: RunEvent): Transition {
  switch (state.phase) {
    case 'running':
      return onUnclaimedRunningEvent(state, event)
    case 'fencing':
      return event.type === 'fenced' ? onFenceReply(state, event.found) : next(state, event)
    case 'claiming':
      return event.type === 'claimed' ? onClaimReply(state, event.reply) : next(state, event)
    case 'letting go':
      return onLettingGoEvent(state, event)
    case 'withholding':
      return onWithholdingEvent(state, event)
    case 'verifying':
      return event.type === 'fenced' ? onVerificationReply(state, event.found) : next(state, event)
    default:
      return next(state, event)
  }
}

function onUnclaimedRunningEvent(state: In<'running'>, event: RunEvent): Transition {
  const { facts } = state
  switch (event.type) {
    case 'answered':
      return facts.isTaken ? fence(state, null, 'own') : withhold(state, 'no_transaction', 'transaction missing')
    case 'failed': {
      const end = event.isWithdrawn ? 'unconfirmed' : 'own'
      if (facts.mayBeCommitted) return prependEffect(STOP, withhold(state, 'may_have_effect', end))
      const { because } = judgeFailure(facts, event.how, event.because)
      return prependEffect(STOP, fence(state, { uncertain: false, because }, end, event.kept))
    }
    case 'commit unconfirmed': {
      const verifying = {
        ...toLastingState(state),
        phase: 'verifying',
        answer: event.answer,
        isByHand: false,
        end: 'own',
      } as const
      return toTransition(
        verifying,
        { do: 'report', type: 'completion_pending' },
        { do: 'send fence', isRepeated: true },
      )
    }
    default:
      return next(state, event)
  }
}

function toLastingState({ lease, facts }: LastingState): LastingState {
  return { lease, facts }
}

function fence(state: LastingState, failure: Failure | null, end: OwnEnd, kept: KeptFailure | null = null): Transition {
  return toTransition(
    { ...toLastingState(state), phase: 'fencing', failure, kept, end },
    { do: 'send fence', isRepeated: false },
  )
}

/** Nobody can see what it did: the outcome becomes unknown, and what is sent is not its success. */
function withhold(state: LastingState, because: FailureReason, end: OwnEnd | 'transaction missing'): Transition {
  return toTransition(
    { ...toLastingState(state), phase: 'withholding', because, end },
    { do: 'send withhold', isRepeated: false },
  )
}

function onFenceReply(state: In<'fencing'>, found: Fenced | null): Transition {
  const { failure, kept, end, facts } = state
  if (found === null) return refuse(state, 'unconfirmed')
  const record = findPreventing(found.record)
  if (!found.isTaken && record !== null) return refuse(state, record)
  if (found.isTaken || facts.isTaken) return refuse(state, 'in flight')
  if (kept !== null) return toTransition({ ...toLastingState(state), phase: 'claiming', kept }, { do: 'send begin' })
  const report: RunEffect[] = failure === null ? [] : [{ do: 'report', type: 'failed', failure }]
  return endRun(state, 'otherwise', ...report, { do: 'end' }, { do: 'tell', end })
}

function refuse(state: LastingState, because: IdempotencyRecord | 'unconfirmed' | 'in flight'): Transition {
  return endRun(state, 'otherwise', { do: 'refuse', because })
}

/** The record, if it keeps this run from what it wants to do: not one that could be taken over. */
export function findPreventing(record: IdempotencyRecord | null): IdempotencyRecord | null {
  const isLive = record?.state === 'in-flight' && record.leaseRemainingMs > 0
  return record?.state === 'completed' || isLive ? record : null
}

/** Its transaction was rolled back, or there was none, so the key is claimed for the failure that retries get. */
function onClaimReply(state: In<'claiming'>, reply: BeginReply | null): Transition {
  const { lease, facts, kept } = state
  if (reply === null) {
    // Whether the key was claimed is unknown, and nothing of this run had an effect.
    const failure = { uncertain: false, because: 'refused' } as const
    const tell: RunEffect = { do: 'tell', end: 'unconfirmed' }
    return toTransition({ ...toLastingState(state), phase: 'letting go' }, tell, { do: 'send release', failure })
  }
  if (!reply.acquired) return refuse(state, reply.record)
  const { attempt } = reply
  const stored = storeAnswer({ lease, facts: { ...facts, attempt } }, kept.answer, kept.mustBeConfirmed)
  return prependEffect({ do: 'claim made' }, stored)
}

function onLettingGoEvent(state: In<'letting go'>, event: RunEvent): Transition {
  if (event.type === 'unanswered') return toTransition(state, { do: 'send again', isAwaited: false })
  const isOver = event.type === 'replied' || event.type === 'given up'
  return isOver ? endRun(state, 'otherwise', { do: 'end' }) : next(state, event)
}

function onWithholdingEvent(state: In<'withholding'>, event: RunEvent): Transition {
  const { because, end } = state
  const failed: RunEffect = { do: 'report', type: 'failed', failure: { uncertain: true, because } }
  switch (event.type) {
    case 'replied': {
      const { reply } = event
      const record = reply.ok ? null : reply.record
      if (end === null) return endRun(state, 'otherwise', ...(reply.ok ? [failed] : []), { do: 'end' })
      const prevents = findPreventing(record)
      if (prevents !== null) return refuse(state, prevents)
      if (reply.ok || record !== null) return endRun(state, 'otherwise', failed, { do: 'end' }, { do: 'tell', end })
      return withholdAgain(state, { do: 'tell', end })
    }
    case 'unanswered':
      return withholdAgain(state, { do: 'tell', end: 'unconfirmed' })
    case 'given up':
      return endRun(state, 'otherwise', { do: 'end' })
    default:
      return next(state, event)
  }
}

function withholdAgain(state: In<'withholding'>, tell: RunEffect): Transition {
  return toTransition({ ...state, end: null }, tell, { do: 'send withhold', isRepeated: true })
}

/** Compares the record's token as soon as no transaction holds the key: until then the COMMIT may still be carried out. */
function onVerificationReply(state: In<'verifying'>, found: Fenced | null): Transition {
  if (found === null) return next(state, { type: 'given up' })
  const outcome = found.isOwn ? 'committed' : 'rolled back'
  return toTransition({ ...toLastingState(state), phase: 'running', byHand: null }, { do: 'tell transaction', outcome })
}
