import type { Findings } from '../layer.js'
import { checkOwnSuccess, checkReplay } from './check-answers.js'
import { checkArrived, checkSent } from './check-commands.js'
import { livenessOf } from './check-liveness.js'
import { checkAffected, checkStarted } from './check-runs.js'
import { checkStep } from './check-steps.js'
import { evidenceOf } from './evidence.js'
import type { Arrival, Command, Observation, Run } from './history.js'
import type { Attempt } from './ledger.js'
import type { Setting } from './setting.js'
import type { Tally } from './tally.js'

/** Checks one world by what can be seen of it: no rule of the machine's is asked. */
export interface Checker {
  see(observation: Observation): void
  /** Nothing more will happen. */
  end(): void
}

export function checkerOf(
  setting: Setting,
  tally: Tally,
  findings: Findings,
  history: readonly Observation[],
  name: string,
): Checker {
  const evidence = evidenceOf(setting, tally, findings, history, name)
  const { ledgers, ledgerOf, attemptOf } = evidence
  const liveness = livenessOf(evidence)
  const runs: Run[] = []
  /** Who an event may be about: more than one, where a lost record began to count anew. */
  const running = new Map<string, Attempt[]>()

  function see(observation: Observation): void {
    const { at } = observation
    liveness.passTo(at)
    switch (observation.type) {
      case 'asked':
        liveness.asked(observation.request)
        break
      case 'sent':
        checkSent(evidence, observation.command)
        break
      case 'arrived':
        checkArrived(evidence, observation.arrival, at)
        break
      case 'heard':
        hear(observation.arrival, at)
        liveness.heard(observation.arrival, at)
        break
      case 'failed':
        answered(observation.command)
        break
      case 'started':
        start(observation.run, at)
        break
      case 'affected':
        checkAffected(evidence, observation.run)
        break
      case 'step called':
      case 'step got':
        checkStep(evidence, observation)
        break
      case 'told':
        tell(observation)
        break
      case 'event':
        report(observation)
        break
      case 'lost':
        lose(observation)
        break
      case 'crashed':
        liveness.crashed(observation.instance)
        evidence.instanceOf(observation.instance).isCrashed = true
        break
      case 'stalled':
      case 'resumed':
        evidence.instanceOf(observation.instance).lastStalledAt = at
    }
  }

  function hear(arrival: Arrival, at: number): void {
    const { command, reply } = arrival
    const { request, name, sentAt } = command
    const { heard, shown } = evidence.instanceOf(request.instance)
    answered(command)
    if (sentAt > (heard.at(-1)?.sentAt ?? Number.NEGATIVE_INFINITY)) heard.push({ sentAt, at })
    const showsCompleted = 'record' in reply && reply.record?.state === 'completed'
    if (showsCompleted) attemptOf(request).told = arrival
    const hasCompleted = name === 'complete' && 'ok' in reply && reply.ok
    if (hasCompleted) attemptOf(request).isConfirmed = true
    if (showsCompleted || hasCompleted) shown.set(`${request.scope} ${request.key}`, { arrival, at })
  }

  function answered(command: Command): void {
    const attempt = attemptOf(command.request)
    if (attempt.unansweredRenewal === command) attempt.unansweredRenewal = null
  }

  function start(run: Run, at: number): void {
    runs[run.id] = run
    const { instance, scope, key } = run.request
    const name = `${instance} ${scope} ${key} ${run.attempt}`
    running.set(name, [...(running.get(name) ?? []), attemptOf(run.request)])
    checkStarted(evidence, run, at)
  }

  function tell({ at, request, told, stalledMs }: Extract<Observation, { type: 'told' }>): void {
    liveness.told(request, told, stalledMs, at)
    switch (told.type) {
      case 'own':
        if (told.end.succeeded) checkOwnSuccess(evidence, request, told.end)
        else tally[told.end.isCertain ? 'certain failures' : 'uncertain failures']++
        break
      case 'replayed':
        checkReplay(evidence, request, told.answer, runs)
        break
      case 'problem':
        if (told.code === 'mismatched') tally.mismatches++
        if (told.code === 'answer_not_kept') tally['answers not kept']++
    }
  }

  function report({ instance, event }: Extract<Observation, { type: 'event' }>): void {
    if (event.type === 'completion_given_up') tally['pending completions given up']++
    if (event.type !== 'completion_pending' && event.type !== 'completed') return
    for (const attempt of running.get(`${instance} ${event.scope} ${event.key} ${event.attempt}`) ?? []) {
      if (!attempt.request.run?.end?.succeeded) continue
      if (event.type === 'completion_pending') attempt.isPending = true
      else if (attempt.isPending) tally['pending completions that landed']++
    }
  }

  function lose({ at, scope, key }: Extract<Observation, { type: 'lost' }>): void {
    const lost = scope === null || key === null ? ledgers.values() : [ledgerOf({ scope, key })]
    for (const ledger of lost) if (ledger.at(at) !== null) ledger.forget()
  }

  function end(): void {
    liveness.passTo(Number.POSITIVE_INFINITY)
    liveness.end()
    for (const ledger of ledgers.values()) tally['ended retentions'] += ledger.retentionsEnded
  }

  return { see, end }
}
