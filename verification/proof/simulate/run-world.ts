import type { Findings } from '../layer.js'
import { checkerOf } from './checker.js'
import { startClients } from './clients.js'
import type { Observation } from './history.js'
import { bootInstance, type Instance } from './instance.js'
import { startProbes } from './probes.js'
import { randomOf } from './random.js'
import { mapRecords, memoryRecords } from './records.js'
import { settingOf } from './setting.js'
import { takeSteps } from './steps.js'
import type { Tally } from './tally.js'
import { startTroubles } from './troubles.js'
import { VirtualClock } from './virtual-clock.js'
import { enter, type Timekeeper } from './virtual-time.js'
import { workInHand } from './work-in-hand.js'
import type { World } from './world.js'

/** Far above what any world takes; who goes on beyond it never comes to rest. */
const MOST_STEPS = 200_000

export interface Lived {
  readonly steps: number
  readonly history: readonly Observation[]
}

/** Lets one world live from its beginning to its end: all of it follows from its seed and its number. */
export async function runWorld(seed: number, number: number, findings: Findings, tally: Tally): Promise<Lived> {
  const random = randomOf(seed, number)
  const setting = settingOf(random)
  const clock = new VirtualClock<Instance>()
  const history: Observation[] = []
  const checker = checkerOf(setting, tally, findings, history, `seed ${seed}, world ${number}`)
  const world: World = {
    setting,
    random,
    clock,
    tally,
    instances: [],
    claimants: new Map(),
    keys: new Map(),
    inHand: workInHand(setting.options.inFlightWaitMs > 0),
    requests: 0,
    commands: 0,
    runs: 0,
    references: 0,
    observe(observation) {
      history.push(observation)
      checker.see(observation)
    },
  }
  const now = () => clock.now
  const records = setting.records === 'map' ? mapRecords(now) : memoryRecords(now)
  const nobody: Timekeeper = {
    now,
    startTimer: () => () => {},
    onReference() {},
  }

  for (let i = 0; i < setting.instances; i++) bootInstance(world, records)
  startClients(world)
  startTroubles(world, records)
  clock.plan(setting.faultsEndAt, () => {
    world.observe({ at: clock.now, type: 'faults ended' })
    if (!world.instances.some(({ isAlive }) => isAlive)) bootInstance(world, records)
  })
  const probes = startProbes(world)

  let isOver = false
  const { storeTimeoutMs } = setting.options
  const resting = new Set<Instance>()
  // Asked while there is much to do, it resolves once all of that has ended.
  clock.plan(setting.faultsEndAt + 1, () => {
    for (const instance of world.instances) {
      if (instance.isAlive) void instance.engine.idle().then(() => resting.add(instance))
    }
  })
  // The replies to the probes show that a pending command was lost; the next copy of it follows within two seconds.
  clock.plan(probes.at + 3 * storeTimeoutMs + 3_000, () => {
    isOver = true
  })

  let steps = 0
  function step(): boolean {
    if (world.references > 0) expectRest(false, 'a timer keeps the process alive')
    if (isOver) return false
    while (true) {
      const due = clock.next()
      if (due === undefined) return false
      const { owner, act } = due
      if (owner !== null && !owner.isAlive) continue
      if (owner?.isStalled) {
        owner.held.push(due)
        continue
      }
      enter(owner === null ? nobody : owner.timekeeper)
      if (++steps > MOST_STEPS) {
        expectRest(false, 'the instances never come to rest')
        return false
      }
      act?.()
      return true
    }
  }

  function expectRest(holds: boolean, otherwise: string): void {
    findings.expect('L3', holds, () => `${otherwise}: seed ${seed}, world ${number}, ${clock.now} ms`)
  }

  await takeSteps(step, () => enter(null))
  for (const instance of world.instances.filter(({ isAlive }) => isAlive)) {
    expectRest(resting.has(instance), `instance ${instance.id} is never idle`)
    expectRest(instance.timers === 0, `instance ${instance.id} is idle, but has timers`)
  }
  checker.end()
  world.inHand.end()
  return { steps, history }
}
