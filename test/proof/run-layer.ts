// One layer in a process of its own: node run-layer.js <name> <scale> <seed>. Its report goes to its parent, as a message.
import { LAYERS, type LayerName } from './layers.js'

const [name, scale, seed] = process.argv.slice(2)
const layer = await LAYERS[name as LayerName]()
const report = await layer({
  scale: Number(scale),
  seed: Number(seed),
  progress: (share) => void process.send?.({ progress: share }),
})
process.send?.({ report }, () => process.disconnect())
