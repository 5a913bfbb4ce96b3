import { Findings, type Layer } from '../layer.js'
import { runWorld } from './run-world.js'
import { digestOf } from './story.js'
import { emptyTally } from './tally.js'
import { installVirtualTime } from './virtual-time.js'

const STEPS = 21_000_000
/** Worlds that are lived through a second time, to see whether their seed reproduces them. */
const REPEATED = 5

/**
 * Deterministic simulation: worlds of clients, application instances and a store, each on a clock of its own, over the
 * real engine. A step is one happening: a message arrives, a timer fires, a client or a handler acts.
 */
export const simulate: Layer = async ({ scale, seed, until, progress }) => {
  const findings = new Findings()
  const tally = emptyTally()
  const leastSteps = Math.ceil(STEPS * scale)
  let worlds = 0
  let steps = 0
  let requests = 0
  let reproduced = 0

  const restore = installVirtualTime()
  try {
    while (steps < leastSteps && !findings.hasViolated(until)) {
      const lived = await runWorld(seed, worlds, findings, tally)
      if (worlds < REPEATED && (await isReproduced(seed, worlds, digestOf(lived.history)))) reproduced++
      steps += lived.steps
      requests += lived.history.filter(({ type }) => type === 'asked').length
      worlds++
      if (worlds % 20 === 0) progress(Math.min(1, steps / leastSteps))
    }
  } finally {
    restore()
  }

  return {
    figures: { worlds, steps, requests },
    checked: findings.checked,
    tried: { ...tally, 'all repeated worlds the same': reproduced === REPEATED ? 1 : 0 },
    violations: findings.violations,
  }
}

async function isReproduced(seed: number, world: number, digest: string): Promise<boolean> {
  const again = await runWorld(seed, world, new Findings(), emptyTally())
  return digestOf(again.history) === digest
}
