import { CertainFailure, type IdempotencyContext } from 'once-per-key/core'
import type { Run, StepCall } from './history.js'
import type { Instance } from './instance.js'
import { isTroubled, type World } from './world.js'

const LABELS = ['charge', 'ship', 'mail'] as const

/** How a handler's steps went. `declined`: one had certainly no effect. */
export type Taken = 'all' | 'declined' | 'failed'

/** What the work of a step returns has more than JSON keeps. */
interface Result {
  readonly run: number
  readonly note?: undefined
}

/** A handler takes its steps: one after another, or side by side; one that throws is tried once more, now and then. */
export async function takeSteps(
  world: World,
  instance: Instance,
  run: Run,
  context: Pick<IdempotencyContext, 'step'>,
): Promise<Taken> {
  const { clock, random, tally, observe } = world
  const { isProbe } = run.request
  const labels = isProbe ? LABELS : LABELS.slice(0, random.between(1, LABELS.length))
  if (!isProbe && random.chance(0.3)) {
    const all = await Promise.all(labels.map((label) => after(random.between(0, 1_000)).then(() => take(label))))
    return all.find((taken) => taken !== 'all') ?? 'all'
  }
  for (const label of labels) {
    const taken = await take(label)
    if (taken !== 'all') return taken
  }
  return 'all'

  async function take(label: string, isAgain = false): Promise<Taken> {
    let isDeclined = false
    try {
      const result = await context.step<Result>(label, async ({ previousOutcome }) => {
        const call: StepCall = {
          label,
          told: previousOutcome,
          end: null,
          endedAt: 0,
          isTakenBack: false,
          isRecorded: false,
        }
        run.steps.push(call)
        tally[previousOutcome === 'none' ? 'steps' : 'steps that had begun before']++
        observe({ at: clock.now, type: 'step called', run, call })
        await end(call)
        isDeclined = call.end === 'declined'
        if (call.end === 'done') return { run: run.id, note: undefined }
        throw isDeclined ? new CertainFailure('declined') : new Error('no answer')
      })
      observe({ at: clock.now, type: 'step got', run, label, from: result.run, isDecoded: !('note' in result) })
      return 'all'
    } catch {
      if (!isAgain && !isDeclined && random.chance(0.4)) return take(label, true)
      return isDeclined ? 'declined' : 'failed'
    }
  }

  function after(ms: number): Promise<void> {
    return new Promise((resolve) => {
      clock.plan(clock.now + ms, resolve, instance)
    })
  }

  /** The work takes its time, whatever becomes of its run. */
  function end(call: StepCall): Promise<void> {
    return new Promise((resolve) => {
      clock.plan(
        clock.now + durationMs(),
        () => {
          call.end = isProbe || random.chance(0.6) ? 'done' : random.pick(['thrown', 'declined'] as const)
          call.endedAt = clock.now
          call.isTakenBack = call.end === 'declined' && call.told === 'none' // None begins inside another one.
          if (call.isTakenBack) tally['steps that were taken back']++
          if (run.end !== null) tally['steps at the bank when their run had ended']++
          observe({ at: clock.now, type: 'step ended', run, call })
          resolve()
        },
        instance,
      )
    })
  }

  function durationMs(): number {
    if (isProbe) return 1
    if (!isTroubled(world)) return random.between(0, 300)
    const { leaseMs } = world.setting.options
    const ms = random.chance(0.15) ? random.between(leaseMs >> 2, 2 * leaseMs) : random.between(0, 300)
    return Math.min(clock.now + ms, world.setting.faultsEndAt + random.between(0, 500)) - clock.now
  }
}
