import { Findings, type Layer } from '../layer.js'
import { bounds } from './bounds.js'
import { fill, fillWithEach, warmUp } from './fill.js'
import { exits } from './process-exit.js'
import { randomFrom } from './random.js'
import { traffic } from './traffic.js'

const MIB = 2 ** 20
const KEYS = 2_000_000
const REQUESTS = 200_000

/** What builds up: the bytes of a MemoryStore through millions of keys, and whatever requests leave behind in a process. */
export const soak: Layer = async ({ scale, seed, progress }) => {
  const findings = new Findings()
  const random = randomFrom(seed)
  const keys = Math.ceil((KEYS * scale) / 2)
  const maxBytes = (scale < 0.5 ? 16 : 64) * MIB

  await exits(findings)
  const trafficked = await traffic(REQUESTS * scale, findings, random, (share) => progress(0.4 * share))
  await bounds(findings)
  await warmUp(findings, random)
  const each = await fillWithEach(maxBytes / 4, findings, random)
  const refusing = await fill('refuse', keys, maxBytes, findings, random, (share) => progress(0.4 + 0.3 * share))
  const evicting = await fill('evict', keys, maxBytes, findings, random, (share) => progress(0.7 + 0.3 * share))

  const worstPercent = Math.max(...Object.values(each), refusing.worstPercent, evicting.worstPercent)
  return {
    figures: {
      'keys through MemoryStore': refusing.keys + evicting.keys,
      'most bytes held, in % of the bound': worstPercent,
      requests: trafficked.requests,
      'bytes more after the second half of the requests': trafficked.grownBytes,
    },
    checked: findings.checked,
    tried: {
      evictions: evicting.evictions,
      'replays of the latest keys': refusing.replays + evicting.replays,
      ...trafficked.asked,
    },
    violations: findings.violations,
  }
}
