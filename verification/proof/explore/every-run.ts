import type { Answer, CommandReply, IdempotencyRecord } from '../../../src/core/record/record.js'
import { next } from '../../../src/core/run/run-machine.js'
import {
  CLAIMING,
  type RunEffect,
  type RunEvent,
  type RunFacts,
  type RunState,
} from '../../../src/core/run/run-state.js'
import { nextUnclaimed } from '../../../src/core/run/unclaimed-machine.js'
import type { Findings } from '../layer.js'

/** A run, and what is around it: what it has sent, and what it was told. */
interface Situation {
  readonly state: RunState
  /** The handler has ended, or its COMMIT was not confirmed. */
  readonly isEnded: boolean
  readonly tells: number
  readonly closes: number
  /** The command that may still be answered; `again`: nobody waits for it. */
  readonly sent: 'no' | 'first' | 'again'
  readonly isRenewing: boolean
  readonly isInStep: boolean
  /** The store has confirmed the answer that the handler gave. */
  readonly isConfirmed: boolean
  readonly mustBeConfirmed: boolean
  /** Its transaction waits for the outcome of its COMMIT. */
  readonly isProving: boolean
  readonly story: Story
}

/** How it came there. */
interface Story {
  readonly before: Story | null
  readonly what: unknown
}

const ANSWER: Answer = { status: 201, statusMessage: '', headers: [], body: null }
const OTHER: Answer = { ...ANSWER, status: 202 }

const recordOf = (answer: Answer): IdempotencyRecord => ({ state: 'completed', fingerprint: 'f', attempt: 1, answer })
const IN_FLIGHT: IdempotencyRecord = {
  state: 'in-flight',
  fingerprint: 'f',
  attempt: 2,
  uncertain: true,
  leaseRemainingMs: 1,
}
const FAILED: IdempotencyRecord = { state: 'failed', fingerprint: null, attempt: 1, uncertain: false }
const REPLIES: readonly CommandReply[] = [
  { ok: true },
  ...[null, FAILED, IN_FLIGHT, recordOf(ANSWER), recordOf(OTHER)].map((record) => ({ ok: false, record }) as const),
]

const ENDS: readonly RunEvent[] = [
  ...[true, false].map((mustBeConfirmed) => ({ type: 'answered', answer: ANSWER, mustBeConfirmed }) as const),
  ...(['certainly', 'perhaps'] as const).flatMap((how) =>
    [true, false].flatMap((isInStep) =>
      [true, false].flatMap((isWithdrawn) =>
        [null, { answer: ANSWER, mustBeConfirmed: false }].map(
          (kept) => ({ type: 'failed', how, because: 'status', kept, isWithdrawn, isInStep }) as const,
        ),
      ),
    ),
  ),
]

const KNOWN: readonly Partial<RunFacts>[] = [{ mayHaveEffect: true }, { hasStep: true }]
const KNOWN_UNCLAIMED: readonly Partial<RunFacts>[] = [{ isTaken: true }, { mayBeCommitted: true }]

/**
 * All that can happen to one run, in any order: each state of its machine, and each event that may come in it. What the machine must
 * keep, whatever the order, is checked at each step. Returns how many situations there are.
 */
export function walkEveryRun(findings: Findings): number {
  let count = 0
  for (const isUnclaimed of [false, true]) {
    const seen = new Set<string>()
    const open: Situation[] = startsOf(isUnclaimed)
    for (let at = open.pop(); at !== undefined; at = open.pop()) {
      const { story, ...rest } = at
      const name = JSON.stringify(rest)
      if (seen.has(name)) continue
      seen.add(name)
      for (const event of eventsIn(at, isUnclaimed)) open.push(step(at, event, isUnclaimed, findings))
    }
    count += seen.size
  }
  return count
}

function startsOf(isUnclaimed: boolean): Situation[] {
  const facts = [0, 1].flatMap((attempt) =>
    [false, true].flatMap((isEarlierUnknown) =>
      [false, true].map((isDeclared) => ({ ...CLAIMING.facts, attempt, isEarlierUnknown, isDeclared })),
    ),
  )
  return facts
    .filter(({ attempt }) => attempt > 0 || !isUnclaimed)
    .map((each) => ({
      state: { phase: 'running', lease: isUnclaimed ? 'gone' : 'held', facts: each, byHand: null },
      ...{ isEnded: false, tells: 0, closes: 0, sent: 'no', isRenewing: false, isInStep: false },
      ...{ isConfirmed: false, mustBeConfirmed: false, isProving: false, story: { before: null, what: each } },
    }))
}

/** What may come next. A check of the lease comes at once: see `step`. */
function eventsIn(at: Situation, isUnclaimed: boolean): RunEvent[] {
  const { state, sent, isRenewing, isInStep, isEnded } = at
  const events: RunEvent[] = []
  if (state.lease === 'held') events.push({ type: 'lease lost', reason: 'lapsed' })
  if (state.lease !== 'gone') events.push({ type: 'lease lost', reason: 'taken' })
  if (!isEnded && state.phase === 'running') {
    events.push(...ENDS, { type: 'committed', answer: ANSWER }, { type: 'commit unconfirmed', answer: ANSWER })
    for (const facts of isUnclaimed ? KNOWN_UNCLAIMED : KNOWN) events.push({ type: 'known', facts })
    if (!isUnclaimed) events.push({ type: 'completed by hand', answer: ANSWER })
    if (state.lease !== 'held') events.push({ type: 'lease over' })
  }
  if (isRenewing) for (const reply of [null, ...REPLIES]) events.push({ type: 'renewed', reply })
  if (isInStep) events.push({ type: 'steps over' })
  if (sent === 'no') return events
  if (state.phase === 'fencing' || (state.phase === 'verifying' && isUnclaimed)) events.push(...fencesIn(state))
  else if (state.phase === 'claiming') events.push(...claimsIn())
  else {
    for (const reply of REPLIES) events.push({ type: 'replied', reply })
    events.push({ type: sent === 'first' ? 'unanswered' : 'given up' })
  }
  return events
}

function fencesIn({ phase }: RunState): RunEvent[] {
  const records = [null, FAILED, IN_FLIGHT, recordOf(OTHER)]
  const founds = records.flatMap((record) => [false, true].map((isTaken) => ({ isTaken, record, isOwn: false })))
  const own = phase === 'verifying' ? [{ isTaken: false, record: recordOf(ANSWER), isOwn: true }] : []
  return [null, ...founds, ...own].map((found) => ({ type: 'fenced', found }))
}

function claimsIn(): RunEvent[] {
  const refused = { acquired: false, record: IN_FLIGHT } as const
  return [null, refused, { acquired: true, attempt: 1, previousOutcome: 'none' } as const].map((reply) => ({
    type: 'claimed',
    reply,
  }))
}

function step(before: Situation, event: RunEvent, isUnclaimed: boolean, findings: Findings): Situation {
  const { state, effects } = (isUnclaimed ? nextUnclaimed : next)(before.state, event)
  const story = { before: before.story, what: { event, effects, phase: state.phase } }
  let at: Situation = { ...before, state, story, ...around(before, event) }
  for (const effect of effects) {
    check(at, effect, findings)
    at = performed(at, effect)
    if (effect.do === 'check lease') return step(at, { type: 'lease checked' }, isUnclaimed, findings)
    if (effect.do === 'release') return step(at, { type: 'steps over' }, isUnclaimed, findings)
  }
  if (state.phase === 'over') {
    const isDone = at.closes === 1 && at.tells === (at.isEnded ? 1 : 0)
    findings.expect('L2', isDone, () => lines('A run is over that was not closed, or not told, or told twice', at))
  }
  if (before.state.phase === 'over') {
    findings.expect('S6', effects.length === 0, () => lines('Something follows the end', at))
  }
  return at
}

function around(before: Situation, event: RunEvent): Partial<Situation> {
  switch (event.type) {
    case 'answered':
      return { isEnded: true, mustBeConfirmed: event.mustBeConfirmed }
    case 'failed':
      return { isEnded: true, isInStep: event.isInStep && before.state.phase === 'running' }
    case 'committed':
      return { isEnded: true, isConfirmed: true }
    case 'commit unconfirmed':
      return { isProving: true, isEnded: true }
    case 'replied':
      return { sent: 'no', isConfirmed: before.isConfirmed || event.reply.ok }
    case 'fenced':
    case 'claimed':
    case 'given up':
      return { sent: 'no' }
    case 'renewed':
      return { isRenewing: false }
    case 'steps over':
      return { isInStep: false }
    default:
      return {}
  }
}

function performed(at: Situation, effect: RunEffect): Situation {
  switch (effect.do) {
    case 'send complete':
    case 'send release':
    case 'send begin':
      return { ...at, sent: 'first' }
    case 'send fence':
    case 'send withhold':
      return { ...at, sent: effect.isRepeated ? 'again' : 'first' }
    case 'send again':
      return { ...at, sent: 'again' }
    case 'renew':
      return { ...at, isRenewing: true }
    case 'tell transaction': // The run goes on, unless that stays unknown: then it was told, and closed.
      return { ...at, isProving: false, isEnded: effect.outcome === 'unknown' }
    case 'tell':
    case 'tell as recorded':
    case 'tell stored':
      return { ...at, tells: at.tells + 1 }
    case 'refuse':
      return { ...at, tells: at.tells + 1, closes: Math.min(1, at.closes + 1) }
    case 'end':
      return { ...at, closes: Math.min(1, at.closes + 1) }
    default:
      return at
  }
}

function check(at: Situation, effect: RunEffect, findings: Findings): void {
  const { state, isConfirmed, mustBeConfirmed } = at
  const { attempt, isEarlierUnknown, hasStep, mayHaveEffect } = state.facts
  if (effect.do.startsWith('tell') && effect.do !== 'tell transaction') {
    findings.expect('L2', at.isEnded && at.tells === 0, () => lines('A client is told before the end, or twice', at))
  }
  if (effect.do === 'tell' && effect.end === 'own' && state.phase === 'pending' && state.answer !== null) {
    const may = isConfirmed || (state.lease === 'held' && !mustBeConfirmed)
    findings.expect('S3', may, () => lines('A success is told that is not stored', at))
  }
  if (effect.do === 'tell' && effect.end === 'own' && state.phase === 'storing') {
    findings.expect('S3', isConfirmed, () => lines('A success is told before its reply', at))
  }
  if (effect.do === 'send release' && (isEarlierUnknown || hasStep || mayHaveEffect) && state.phase !== 'letting go') {
    findings.expect('S5', effect.failure.uncertain, () => lines('What may have had its effect counts as certain', at))
  }
  if (
    effect.do === 'report' &&
    effect.type === 'failed' &&
    attempt === 1 &&
    isEarlierUnknown &&
    state.phase === 'over'
  ) {
    const isTold = effect.failure.because === 'earlier_attempt' || effect.failure.because === 'no_transaction'
    const isUnclaimed = effect.failure.because === 'may_have_effect'
    findings.expect('S5', isTold || isUnclaimed, () => lines('An earlier attempt is forgotten', at))
  }
}

function lines(what: string, { story }: Situation): string {
  const steps: string[] = []
  for (let at: Story | null = story; at !== null; at = at.before) steps.unshift(`- ${JSON.stringify(at.what)}`)
  return [what, ...steps].join('\n')
}
