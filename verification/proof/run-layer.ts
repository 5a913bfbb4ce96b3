// One layer in a process of its own: node run-layer.js <name> <scale> <seed> [<until> [<on>]]. Its report goes to its parent, as a message.
import type { Check } from './checks.js'
import { LAYERS, type LayerName } from './layers.js'

const [name, scale, seed, until, on] = process.argv.slice(2)
const layer = await LAYERS[name as LayerName]()
const report = await layer({
  scale: Number(scale),
  seed: Number(seed),
  until: (until || undefined) as Check | undefined,
  on: on || undefined,
  progress: (share) => void process.send?.({ progress: share }),
})
// What waits in a world that was left, as a process that died leaves it, would keep this one alive.
process.send?.({ report }, () => process.exit())
