import type { Request, Told } from './history.js'
import type { Instance } from './instance.js'
import { ask } from './serving.js'
import type { World } from './world.js'

const SCOPES = ['north', 'south'] as const
const NEWEST_KEYS = 2
/** Some are patient enough to see a lease lapse. */
const TRIES = [0, 1, 3, 6, 40]

/** Clients race for few keys until shortly after the faults: they retry, leave, change bodies, reuse keys over scopes. */
export function startClients(world: World): void {
  const { clock, random, setting, tally, observe } = world
  const { storeTimeoutMs, inFlightWaitMs } = setting.options
  const until = setting.faultsEndAt + 2_000
  for (let i = 0; i < setting.clients; i++) clock.plan(random.between(1, 500), startOperation)

  /** Mostly one of the newest: there are newer ones from time to time, and old ones come back. */
  function someKey(): string {
    const newest = Math.floor(clock.now / setting.keyMs)
    return `k${newest > 0 && random.chance(0.15) ? random.between(0, newest) : newest + random.between(0, NEWEST_KEYS - 1)}`
  }

  function startOperation(): void {
    send({ scope: random.pick(SCOPES), key: someKey(), content: random.chance(0.15) ? 1 : 0 }, random.pick(TRIES))
  }

  function send(operation: { scope: string; key: string; content: number }, triesLeft: number): void {
    if (clock.now >= until) return
    const instance = someInstance()
    if (instance === undefined) {
      after(500, () => send(operation, triesLeft))
      return
    }
    const request = ask(world, instance, operation, (told) => next(told))
    if (random.chance(inFlightWaitMs > 0 ? 0.3 : 0.1)) raceAgainst(operation)
    request.leave = () => leave(request)
    if (random.chance(0.25)) after(Math.max(2 * storeTimeoutMs, inFlightWaitMs), request.leave)

    function next(told: Told | null): void {
      const isDone = triesLeft <= 0 || (isFinal(told) && !random.chance(0.3))
      after(isDone ? 300 : 600, isDone ? startOperation : () => send(operation, triesLeft - 1))
    }

    /** It has no patience, and tries again at once or goes on with something else. */
    function leave(request: Request): void {
      if (request.isLeft || !instance?.open.has(request)) return
      request.isLeft = true
      if (request.run !== null && request.run.end === null) tally['clients that left during a run']++
      observe({ at: clock.now, type: 'left', request })
      next(null)
    }
  }

  function raceAgainst(operation: { scope: string; key: string; content: number }): void {
    const other = someInstance()
    if (other !== undefined) ask(world, other, operation, () => {})
  }

  function someInstance(): Instance | undefined {
    const alive = world.instances.filter((instance) => instance.isAlive)
    return alive.length === 0 ? undefined : random.pick(alive)
  }

  function after(mostMs: number, act: () => void): void {
    clock.plan(clock.now + random.between(0, mostMs), act)
  }
}

function isFinal(told: Told | null): boolean {
  if (told === null) return false
  if (told.type === 'problem') return told.code !== 'in_flight' && told.code !== 'store_unavailable'
  return told.type === 'replayed' || told.end.succeeded
}
