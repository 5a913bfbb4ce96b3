import { Buffer } from 'node:buffer'
import { type Answer, CertainFailure, type MaybePromise } from 'once-per-key/core'
import type { RequestEnd, RequestRun } from 'once-per-key/http'
import { type Ending, endingOf, isCertain, isSuccess, NO_ANSWER } from './endings.js'
import { type Taken, takeSteps } from './handler-steps.js'
import type { Request, Run, RunEnd, Told } from './history.js'
import { type Instance, stallForAMoment } from './instance.js'
import { isTroubled, type World } from './world.js'

/** Runs the handler: it takes its time, has its effect or not, and ends in one of many ways, or never. */
export function runHandler(
  world: World,
  instance: Instance,
  request: Request,
  held: RequestRun,
  tell: (told: Told) => void,
): void {
  const { clock, random, setting, tally, observe } = world
  const { context } = held
  const startedAt = clock.now
  const run: Run = {
    id: world.runs++,
    request,
    attempt: context.attempt,
    previousOutcome: context.previousOutcome,
    mayHaveEffect: false,
    hasPaid: false,
    steps: [],
    end: null,
  }
  request.run = run
  observe({ at: startedAt, type: 'started', run })
  if (context.attempt === 0) tally['unprotected runs']++

  const isHung = !request.isProbe && isTroubled(world) && random.chance(0.04)
  const endsAt = isHung ? hungUntil() : startedAt + durationMs()
  const ending = endingOf(random, request.isProbe || random.chance(0.55))
  if (!request.isProbe && random.chance(0.4)) {
    const at = startedAt + random.between(0, Math.min(endsAt - startedAt, 2_000))
    clock.plan(at, pay, instance)
  }
  const steps =
    setting.hasSteps && (request.isProbe || random.chance(0.6)) ? takeSteps(world, instance, run, context) : null
  // Some do not wait for theirs, as where a time limit outside has answered.
  const waitsForSteps = steps !== null && !isHung && (request.isProbe || random.chance(0.7))
  if (waitsForSteps) {
    void steps.then((taken) => end(taken === 'all' ? ending : endAfter(taken)))
  } else if (endsAt < Number.POSITIVE_INFINITY) clock.plan(endsAt, () => end(ending), instance)
  if (isHung) tally['handlers that never ended']++
  if (random.chance(0.4)) watchSignal()
  if (isTroubled(world) && random.chance(setting.faults.stallInRun)) {
    const at = startedAt + random.between(0, Math.min(endsAt - startedAt, 2_000))
    const ms = setting.options.leaseMs + random.between(-1_000, 5_000)
    clock.plan(at, () => stallForAMoment(world, instance, ms), instance)
  }

  function endAfter(taken: Taken): Ending {
    if (taken === 'declined' && random.chance(0.7)) return { status: 422, isThrown: random.chance(0.5) }
    return random.chance(0.5) ? NO_ANSWER : { status: 500, isThrown: false }
  }

  /** For ever, if its run's time is over before the faults end; else its never ending is one of the faults. */
  function hungUntil(): number {
    const { maxRunMs } = setting.options
    return startedAt + maxRunMs <= setting.faultsEndAt ? Number.POSITIVE_INFINITY : soonAfterFaults()
  }

  function durationMs(): number {
    if (request.isProbe) return 1
    if (!isTroubled(world)) return random.between(0, 800)
    const { leaseMs } = setting.options
    const ms = random.chance(0.15) ? random.between(leaseMs >> 2, 2 * leaseMs) : random.between(0, 300)
    return Math.min(startedAt + ms, soonAfterFaults()) - startedAt
  }

  function soonAfterFaults(): number {
    return setting.faultsEndAt + random.between(0, 1_000)
  }

  /** It says so first, where its failure would count as certain otherwise. */
  function pay(): void {
    if (run.end !== null) return
    const { effects } = setting.options
    if (waitsForSteps || effects === 'declared' || isCertain(setting, run, ending) || random.chance(0.5)) {
      context.mayHaveEffect()
      run.mayHaveEffect = true
    } else if (!isSuccess(setting, ending)) tally['effects before a failure that nobody announced']++
    haveEffect()
  }

  function haveEffect(): void {
    run.hasPaid = true
    observe({ at: clock.now, type: 'affected', run })
  }

  function watchSignal(): void {
    const obeys = random.chance(0.7)
    context.signal.addEventListener('abort', () => {
      if (run.end !== null) return
      tally[obeys ? 'obeyed signals' : 'ignored signals']++
      if (obeys) clock.plan(clock.now + random.between(0, 20), () => end(NO_ANSWER), instance)
    })
  }

  function end(how: Ending): void {
    if (run.end !== null) return
    const { status, isThrown } = how
    const succeeded = isSuccess(setting, how)
    if (succeeded && !run.hasPaid) haveEffect()
    const answer = status === null ? null : answerOf(status)
    const isJudged = run.steps.every(({ isTakenBack }) => isTakenBack)
    run.end = { succeeded, isCertain: !succeeded && isCertain(setting, run, how, isJudged), answer, at: clock.now }
    observe({ at: clock.now, type: 'ended', run })
    if (isThrown) tally['certain failures that were thrown']++
    if (isThrown) held.reportError(DECLINED)
    void settled(run.end, answer === null ? noAnswer() : held.settle(answer))
    if (answer !== null && random.chance(0.1)) failLate()
  }

  async function noAnswer(): Promise<RequestEnd> {
    await held.fail()
    return { action: 'send' }
  }

  async function settled(how: RunEnd, settling: MaybePromise<RequestEnd>): Promise<void> {
    const settled = await settling
    switch (settled.action) {
      case 'send':
        return tell({ type: 'own', end: how })
      case 'replay':
        return tell({ type: 'replayed', answer: settled.answer })
      case 'reject':
        return tell({ type: 'problem', code: settled.problem.code })
    }
  }

  /** Throws after it has ended its response, which must change nothing. */
  function failLate(): void {
    tally['late errors of a handler']++
    clock.plan(clock.now + random.between(0, 500), () => void held.fail(), instance)
  }

  function answerOf(status: number): Answer {
    const isKept = request.isProbe || !random.chance(0.06)
    return {
      status,
      statusMessage: '',
      headers: [
        ['Content-Type', 'text/plain'],
        ['X-Run', String(run.id)],
        ['Set-Cookie', 'session=1'],
      ],
      body: isKept ? Buffer.from(`run ${run.id}`) : null,
    }
  }
}

const DECLINED = new CertainFailure('The bank has declined.')
