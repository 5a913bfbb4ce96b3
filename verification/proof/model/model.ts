import fc from 'fast-check'
import { type Event, histories, noVisits, type Visits } from '../../../test/support/histories.js'
import { inTime } from '../../../test/support/in-time.js'
import { Findings, type Layer } from '../layer.js'
import { GROUNDS, type Way } from './grounds.js'
import { withFingerprintsOfClaims } from './sealing.js'
import { compare } from './trial.js'

const COMMANDS = 100_000
const BATCH = 50
const OPENING_LIMIT_MS = 60_000
/** A store that differs this often has been found out. */
const ENOUGH_DIFFERENCES = 25

/** Random histories of commands get the machine's replies, from each store that ships, through each client library. */
export const model: Layer = async ({ scale, seed, progress }) => {
  const findings = new Findings()
  const figures: Record<string, number> = {}
  const tried: Record<string, number> = {}
  const commands = Math.ceil(COMMANDS * scale)
  const total = commands * GROUNDS.length
  let compared = 0

  for (const { name, open } of GROUNDS) {
    const visits = noVisits()
    const sealsBefore = findings.checked.S13 ?? 0
    const { ways, close } = await inTime(open(), OPENING_LIMIT_MS)
    try {
      const share = Math.ceil(commands / ways.length)
      const runs = ways.map((way, i) => run(way, `${name} through ${way.name}`, seed + i, share))
      for (const [i, { histories, visits: seen }] of (await Promise.all(runs)).entries()) {
        add(visits, seen)
        tried[`histories on ${name} through ${ways[i]?.name}`] = histories
      }
    } finally {
      await close()
    }
    figures[`commands on ${name}`] = visits.commands
    tried[`sealed answers on ${name}`] = (findings.checked.S13 ?? 0) - sealsBefore
    for (const [what, times] of Object.entries(visits)) tried[`${what} on ${name}`] = times
  }
  progress(1)
  return { figures, checked: findings.checked, tried, violations: findings.violations }

  /** Until so many commands were compared. Histories come in batches, each from a seed of its own. */
  async function run(way: Way, about: string, firstSeed: number, share: number): Promise<Ran> {
    const visits = noVisits()
    let started = 0
    let differences = 0
    let batch: readonly Event[][] = []

    async function worker(): Promise<void> {
      while (visits.commands < share && differences < ENOUGH_DIFFERENCES) {
        const number = started++
        const batchSeed = firstSeed + 1_000 * Math.floor(number / BATCH)
        if (number % BATCH === 0) {
          batch = fc.sample(histories(way.unitMs), { numRuns: BATCH, seed: batchSeed })
        }
        const setting = way.setting(number)
        const drawn = batch[number % BATCH] as Event[]
        const history = setting.sealing === undefined ? drawn : withFingerprintsOfClaims(drawn)
        const story = `${about}, batch of seed ${batchSeed}, history ${number % BATCH}`
        if (await compare(history, setting, findings, visits, story)) differences++
        compared += history.filter(({ type }) => type !== 'advance').length
        progress(Math.min(1, compared / total))
      }
    }
    await Promise.all(Array.from({ length: way.atOnce }, worker))
    return { histories: started, visits }
  }
}

interface Ran {
  readonly histories: number
  readonly visits: Visits
}

function add(to: Visits, more: Visits): void {
  for (const name of Object.keys(to) as (keyof Visits)[]) to[name] += more[name]
}
