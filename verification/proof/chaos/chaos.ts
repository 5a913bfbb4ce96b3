import { Findings, type Layer } from '../layer.js'
import { choicesOf } from './choices.js'
import { clusterRedis } from './cluster-redis.js'
import { reshardedRedis } from './resharded-redis.js'
import { play, type Round } from './round.js'
import { sentinelRedis } from './sentinel-redis.js'
import { singleRedis } from './single-redis.js'
import { add, type Tally } from './tally.js'

const ROUND_MS = 60_000
const SHORTEST_MS = 7_000
/** Below it there is no time for a failover. */
const LEAST_SCALE_OF_CLUSTER = 0.2

/**
 * Real processes of the payments example over a real Redis: killed, stopped, cut off, restarted, while clients abort,
 * repeat, race and change their minds. What all of them noted is checked afterwards.
 */
export const chaos: Layer = async ({ scale, seed, progress }) => {
  const findings = new Findings()
  const figures: Tally = {}
  const tried: Tally = {}
  const common = { seed, chaosMs: Math.max(SHORTEST_MS, ROUND_MS * scale), clients: 14, ground: singleRedis }
  const single: readonly Round[] = [
    { ...common, name: 'one Redis, unknown outcomes run again', unknownOutcome: 'rerun' },
    { ...common, name: 'one Redis, unknown outcomes are refused', unknownOutcome: 'refuse' },
  ]
  const cluster: Round = { ...common, name: 'a cluster with failovers', unknownOutcome: 'rerun', ground: clusterRedis }
  const sentinel: Round = {
    ...common,
    name: 'sentinels, sealed answers',
    unknownOutcome: 'refuse',
    ground: sentinelRedis,
    isSealed: true,
  }
  const resharded: Round = {
    ...common,
    name: 'a cluster whose slots move',
    unknownOutcome: 'rerun',
    ground: reshardedRedis,
  }
  // The first two share the machine; an election would suffer from it.
  const stages = [single, [sentinel, resharded], ...(scale < LEAST_SCALE_OF_CLUSTER ? [] : [[cluster]])]

  for (const [stage, rounds] of stages.entries()) {
    // The rest would only say again what was found.
    if (findings.violations.length > 0) break
    const outcomes = await Promise.all(rounds.map((round) => play(round, choicesOf(seed, round.name), findings)))
    for (const outcome of outcomes) {
      add(figures, outcome.figures)
      add(tried, outcome.tried)
    }
    progress((stage + 1) / stages.length)
  }
  return { figures, tried, checked: findings.checked, violations: findings.violations }
}
