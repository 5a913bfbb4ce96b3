import { Findings, type Layer } from '../layer.js'
import { bounds } from './bounds.js'
import { fairness } from './fairness.js'
import { fill, fillWithEach, warmUp } from './fill.js'
import { outage } from './outage.js'
import { exits, waits } from './process-exit.js'
import { randomFrom } from './random.js'
import { snapshots } from './snapshots.js'
import { traffic } from './traffic.js'
import { unknownOutcomes } from './unknown-outcomes.js'

const MIB = 2 ** 20
const KEYS = 2_000_000
const REQUESTS = 200_000
/** Half of how long Redis hangs. */
const OUTAGE_MS = 30_000

/**
 * What builds up: the bytes of a MemoryStore through millions of keys, whatever requests leave behind in a process, and what
 * waits for a Redis that hangs. And what processes share that are started from one snapshot.
 */
export const soak: Layer = async ({ scale, seed, progress }) => {
  const findings = new Findings()
  const random = randomFrom(seed)
  const keys = Math.ceil((KEYS * scale) / 2)
  const maxBytes = (scale < 0.5 ? 16 : 64) * MIB

  await exits(findings)
  await waits(findings)
  const trafficked = await traffic(REQUESTS * scale, findings, random, (share) => progress(0.4 * share))
  await bounds(findings)
  await fairness(findings)
  await unknownOutcomes(findings)
  await snapshots(findings)
  const hung = await outage(Math.max(2_000, OUTAGE_MS * scale), findings)
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
      'requests while Redis hung': hung.refused,
      'commands that waited for it': hung.unanswered,
      'commands more in the second half': hung.grownCommands,
      'bytes more in the second half': hung.grownBytes,
    },
    checked: findings.checked,
    tried: {
      evictions: evicting.evictions,
      'replays of the latest keys': refusing.replays + evicting.replays,
      'claims refused without being sent': hung.paused,
      'completions that outlived an outage': hung.completions,
      ...trafficked.asked,
    },
    violations: findings.violations,
  }
}
