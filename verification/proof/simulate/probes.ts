import type { Told } from './history.js'
import { ask } from './serving.js'
import type { World } from './world.js'

/** A lease and 2 s after the last fault each key has resolved: asked for now, it says so at once. */
export function startProbes(world: World): { readonly at: number } {
  const { clock, random, setting, tally } = world
  const at = setting.faultsEndAt + setting.options.leaseMs + 2_000
  clock.plan(at, () => {
    for (const { scope, key } of world.keys.values()) probe(scope, key, 0, 3)
  })

  function probe(scope: string, key: string, content: number, more: number): void {
    const alive = world.instances.filter(({ isAlive }) => isAlive)
    tally.probes++
    ask(world, random.pick(alive), { scope, key, content, isProbe: true }, (told) => {
      if (more === 0 || told === null) return
      if (isMismatch(told)) probe(scope, key, 1 - content, more - 1)
      else if (told.type !== 'problem') probe(scope, key, content, 0)
    })
  }

  return { at }
}

function isMismatch(told: Told): boolean {
  return told.type === 'problem' && told.code === 'mismatched'
}
