import { bootInstance, crash, cutOff, type Instance, stallForAMoment } from './instance.js'
import type { Records } from './records.js'
import { isTroubled, type World } from './world.js'

/** From time to time an instance crashes, stalls or is cut off from the store, or the store loses or damages a record. */
export function startTroubles(world: World, records: Records): void {
  const { clock, random, setting, tally, observe } = world
  const { faults, options, faultsEndAt } = setting
  if (faults.troubleEveryMs > 0) planNext()
  clock.plan(faultsEndAt, () => records.repair())

  function planNext(): void {
    clock.plan(clock.now + random.between(1, 2 * faults.troubleEveryMs), () => {
      if (!isTroubled(world)) return
      cause()
      planNext()
    })
  }

  function cause(): void {
    const alive = world.instances.filter((instance) => instance.isAlive)
    const instance = alive.length > 0 ? random.pick(alive) : undefined
    if (instance !== undefined && random.chance(faults.stall)) stallForAMoment(world, instance)
    if (instance !== undefined && random.chance(faults.cut)) cutOff(world, instance)
    if (instance !== undefined && random.chance(faults.crash)) restart(instance)
    if (random.chance(faults.recordLost)) {
      records.lose(random, (scope, key) => {
        tally['lost records']++
        observe({ at: clock.now, type: 'lost', scope, key })
      })
    }
    if (random.chance(faults.recordDamaged) && records.damage(random)) {
      clock.plan(clock.now + random.between(0, options.leaseMs), () => records.repair())
    }
  }

  function restart(instance: Instance): void {
    tally.crashes++
    crash(world, instance)
    clock.plan(Math.min(clock.now + random.between(0, 3_000), faultsEndAt), () => void bootInstance(world, records))
  }
}
