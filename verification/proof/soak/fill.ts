import type { RequestEngine } from 'once-per-key/http'
import { MemoryStore } from 'once-per-key/memory'
import { type FakeClock, fakeClock } from '../../../test/support/fake-clock.js'
import type { Findings } from '../layer.js'
import { ownPulse } from '../limits/pulse.js'
import { attempt, engineOver, factsOf, KINDS, type Kind, TIMES } from './attempts.js'
import { footprint } from './footprint.js'
import { plant } from './lasting-records.js'
import type { Random } from './random.js'

export interface Filled {
  readonly keys: number
  /** The most that was really held, in percent of the bound. */
  readonly worstPercent: number
  readonly evictions: number
  readonly replays: number
}

/** A promise of a bound is kept where what is really held stays this near to it. */
const MOST_PERCENT = 110
/** Of `maxBytes`: claims and answers may take as much, and failures besides, each kind in a budget of its own. */
const SHARES = { completed: 1, 'failed after an effect': 1 / 2, failed: 1 / 8 } as const
/** So few of the mix are failures that they take no more than a fifth. */
const SHARE_OF_MIX = 1.2
const IDLE_BEATS = 40
const KEYS_BETWEEN_LOOKS = 20_000
const PLANTED = 500
/** What objects of this process's own may differ by between two measurements. */
const NOISE_BYTES = 3 * 2 ** 20

const MIX: readonly (readonly [Kind, number])[] = [
  ['completed with a small answer', 60],
  ['completed with 1 KiB', 10],
  ['completed with many headers', 5],
  ['completed with 16 KiB', 3],
  ['completed under a long key', 4],
  ['completed without a body', 4],
  ['completed without its answer', 2],
  ['failed', 10],
  ['failed after an effect', 2],
]
const MEAN_RECORD_BYTES = 2_100

/**
 * So many keys through one store, many times what it has room for, as a service would send them. Where it refuses when
 * full, time passes so fast that what has expired makes room for each claim; where it evicts, a quarter as fast.
 */
export async function fill(
  whenFull: 'refuse' | 'evict',
  keys: number,
  maxBytes: number,
  findings: Findings,
  random: Random,
  progress: (share: number) => void,
): Promise<Filled> {
  const about = `a MemoryStore of ${maxBytes} bytes that ${whenFull}s when it is full`
  const bound = maxBytes * SHARE_OF_MIX
  const fits = maxBytes / MEAN_RECORD_BYTES
  const msForEach = TIMES.retentionMs / (whenFull === 'refuse' ? 0.8 * fits : 4 * fits)
  const before = await footprint()
  let worst = 0
  const { evictions, replays } = await run()
  const left = await leftOver(before)
  findings.expect('S12', left < NOISE_BYTES, () => `${left} bytes are still held when ${about} is gone.`)
  return { keys, worstPercent: Math.round((100 * worst) / bound), evictions, replays }

  async function run(): Promise<{ evictions: number; replays: number }> {
    const clock = fakeClock()
    const store = new MemoryStore({ maxBytes, whenFull, now: clock.now })
    const engine = engineOver(store)
    const planted = await plant(store, PLANTED)
    const recent: string[] = []
    let evictions = 0
    let replays = 0
    store.observe(() => evictions++)
    const pass = passing(clock, msForEach)

    for (let i = 1; i <= keys; i++) {
      pass()
      const kind = random.pick(MIX)
      const key = await attempt(engine, kind, random)
      findings.expect('L1', key !== null, () => `${about} refused claim ${i}, although records in it have expired.`)
      if (key === null) break
      if (kind.startsWith('completed')) recent[i % 100] = key
      if (i % KEYS_BETWEEN_LOOKS === 0 || i === keys) await look(i)
    }
    return { evictions, replays }

    async function look(i: number): Promise<void> {
      await expectIdle(engine, findings)
      const held = (await footprint()) - before
      worst = Math.max(worst, held)
      findings.expect('S12', 100 * held <= MOST_PERCENT * bound, () => {
        return `${about} really holds ${held} bytes after ${i} keys: ${((100 * held) / bound).toFixed(1)} % of its bound.`
      })
      await planted.renew()
      await planted.expectAlive(findings, `${about}, after ${i} keys`)
      for (const key of Object.values(recent)) {
        const { action } = await engine.decide(factsOf(key))
        if (action === 'replay') replays++
        // An answer that was not kept is a refusal; only a run would be a second payment.
        findings.expect('S4', action !== 'execute', () => `${about} dropped a key of the last 100, after ${i} keys.`)
      }
      progress(i / keys)
    }
  }
}

/** Attempts of one kind alone, until the store is full: none is counted as much less than it is. Returns percentages. */
export async function fillWithEach(
  maxBytes: number,
  findings: Findings,
  random: Random,
): Promise<Readonly<Record<Kind, number>>> {
  const percentages: Partial<Record<Kind, number>> = {}
  for (const kind of KINDS) percentages[kind] = await fillWith(kind, maxBytes, findings, random)
  return percentages as Record<Kind, number>
}

/** What is compiled and set up once is in place when measuring begins. */
export async function warmUp(findings: Findings, random: Random): Promise<void> {
  const engine = engineOver(new MemoryStore())
  for (let i = 0; i < 3_000; i++) await attempt(engine, random.pick(MIX), random)
  await expectIdle(engine, findings)
}

async function fillWith(kind: Kind, maxBytes: number, findings: Findings, random: Random): Promise<number> {
  const before = await footprint()
  let evictions = 0
  const store = new MemoryStore({ maxBytes, whenFull: 'evict' })
  store.observe(() => evictions++)
  const engine = engineOver(store)
  for (let i = 0; evictions < 100 && i < maxBytes / 500; i++) {
    if ((await attempt(engine, kind, random)) === null) break
  }
  await expectIdle(engine, findings)
  const bound = maxBytes * (kind === 'failed' || kind === 'failed after an effect' ? SHARES[kind] : SHARES.completed)
  const percent = Math.round((100 * ((await footprint()) - before)) / bound)
  store.clear() // Held until here: else it may be garbage before it is measured.
  findings.expect('S12', percent <= MOST_PERCENT, () => {
    return `a MemoryStore of ${maxBytes} bytes, full of attempts that ${kind}, really holds ${percent} % of its bound`
  })
  return percent
}

/** Nothing here waits for anything: who is not idle in a moment never is. */
async function expectIdle(engine: RequestEngine<unknown>, findings: Findings): Promise<void> {
  const isIdle = await ownPulse.within(IDLE_BEATS, engine.idle()).then(
    () => true,
    () => false,
  )
  findings.expect('L3', isIdle, () => 'idle() does not resolve, although every attempt has ended')
}

/** A compiler that works in the background holds what it compiles for, for seconds on a busy machine. */
async function leftOver(before: number): Promise<number> {
  let left = (await footprint()) - before
  for (let tries = 0; left >= NOISE_BYTES && tries < 40; tries++) {
    await new Promise((resolve) => setTimeout(resolve, 250))
    left = (await footprint()) - before
  }
  return left
}

/** Time that passes by fractions, on a clock that knows whole milliseconds. */
function passing(clock: FakeClock, ms: number): () => void {
  let due = 0
  return () => {
    due += ms
    const whole = Math.floor(due)
    if (whole > 0) clock.advance(whole)
    due -= whole
  }
}
