import { createRequestEngine, type IdempotencyEvent, type RequestEngine } from 'once-per-key/http'
import type { Request } from './history.js'
import { storeBehindNetwork } from './network.js'
import type { Records } from './records.js'
import type { Due } from './virtual-clock.js'
import type { Timekeeper } from './virtual-time.js'
import { criticalMs, type World } from './world.js'

/** One process of an application, as far as it matters: an engine, a clock, and a connection to the store. */
export interface Instance {
  readonly id: number
  readonly engine: RequestEngine<Request>
  readonly timekeeper: Timekeeper
  isAlive: boolean
  /** What is due is handled when it goes on. */
  isStalled: boolean
  /** How long it has stood still so far. */
  stalledMs: number
  readonly held: Due<Instance>[]
  cutUntil: number
  isCutSilently: boolean
  /** How many timers of its engine are pending. */
  timers: number
  /** What to tell the clients of unanswered requests when it crashes. */
  readonly open: Map<Request, () => void>
}

export function bootInstance(world: World, records: Records): Instance {
  const { clock, random, setting, observe } = world
  const id = world.instances.length
  // No clock of an application agrees with the store's.
  const skewMs = random.between(0, 1_000_000)

  const timekeeper: Timekeeper = {
    now: () => clock.now + skewMs,
    startTimer(ms, fire) {
      instance.timers++
      const due = clock.plan(
        clock.now + ms,
        () => {
          instance.timers--
          fire()
        },
        instance,
        true,
      )
      return () => {
        instance.timers--
        due.act = null
      }
    },
    onReference(change) {
      world.references += change
    },
  }

  const engine = createRequestEngine<Request>({
    ...setting.options,
    ...(setting.isSuccess && { isSuccess: setting.isSuccess }),
    ...(setting.isCertainFailure && { isCertainFailure: setting.isCertainFailure }),
    store: storeBehindNetwork(world, records, () => instance),
    scope: (request) => request.scope,
    onEvent(event: IdempotencyEvent) {
      observe({ at: clock.now, type: 'event', instance: id, event })
    },
  })

  const instance: Instance = {
    id,
    engine,
    timekeeper,
    isAlive: true,
    isStalled: false,
    stalledMs: 0,
    held: [],
    cutUntil: 0,
    isCutSilently: false,
    timers: 0,
    open: new Map(),
  }
  world.instances.push(instance)
  observe({ at: clock.now, type: 'booted', instance: id })
  return instance
}

/** Ends it at once: nothing of it goes on, though commands that it sent may still arrive. */
export function crash(world: World, instance: Instance): void {
  const { clock, random, observe } = world
  instance.isAlive = false
  observe({ at: clock.now, type: 'crashed', instance: instance.id })
  for (const tellClient of instance.open.values()) clock.plan(clock.now + random.between(0, 50), tellClient)
  instance.open.clear()
}

/** Stops it; it finds out afterwards, and handles what has come meanwhile all at once. */
export function stallForAMoment(world: World, instance: Instance, ms = criticalMs(world)): void {
  const { clock, setting, tally, observe } = world
  if (instance.isStalled) return
  tally.stalls++
  const from = clock.now
  instance.isStalled = true
  observe({ at: from, type: 'stalled', instance: instance.id })
  clock.plan(Math.min(from + ms, setting.faultsEndAt), () => {
    instance.isStalled = false
    if (!instance.isAlive) return
    instance.stalledMs += clock.now - from
    observe({ at: clock.now, type: 'resumed', instance: instance.id })
    // Nobody waited for it: its connection to the store may have to be made again.
    if (world.random.chance(0.5)) cutOff(world, instance)
    handleHeld(world, instance)
  })
}

/** Keeps its commands from the store for a while: they fail at once, or nothing is heard of them. */
export function cutOff(world: World, instance: Instance): void {
  const { clock, random, tally, observe } = world
  tally['cut-off instances']++
  instance.cutUntil = clock.now + criticalMs(world)
  instance.isCutSilently = random.chance(0.5)
  observe({ at: clock.now, type: 'cut off', instance: instance.id })
}

function handleHeld({ clock, random }: World, instance: Instance): void {
  const held = instance.held.splice(0)
  // It may hear its sockets before its timers.
  if (random.chance(0.5)) held.sort((one, other) => Number(one.isTimer) - Number(other.isTimer))
  for (const due of held) clock.plan(clock.now, () => due.act?.(), instance, due.isTimer)
}
