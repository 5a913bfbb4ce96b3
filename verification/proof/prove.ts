// All layers and all planted faults: npm run prove [-- layer … | layers | mutants]. PROVE_SCALE multiplies the work, PROVE_SEED repeats a run.
import { mkdir, writeFile } from 'node:fs/promises'
import { availableParallelism } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { CHECKS, type Check } from './checks.js'
import { type Chosen, chosenBy } from './chosen.js'
import { inLanes } from './lanes.js'
import { faultsOf } from './layer.js'
import type { LayerName } from './layers.js'
import type { Mutant } from './mutants/mutant.js'
import { isFound, type Trial, tryMutant } from './mutants/trial.js'
import { runLayer } from './run.js'
import { proofTable, type Row } from './table.js'
import { buildTree } from './tree.js'

const ROOT = fileURLToPath(new URL('../..', import.meta.url))
const LANES = 2

const scale = positive('PROVE_SCALE', 1)
const seed = positive('PROVE_SEED', Date.now() % 1_000_000_007)
const asked = process.argv.slice(2)
const { layers, mutants } = chosen()

const rows: Row[] = []
const trials: Trial[] = []
const faults: string[] = []
const shares = new Map<string, number>()

console.log(
  `proof: scale ${scale}, seed ${seed}, ${LANES} at a time on ${availableParallelism()} cores, Node ${process.version}`,
)
const begun = performance.now()
let started = 0
const pattern = await buildTree()
try {
  await inLanes(LANES, [...layers.map((layer) => () => prove(layer)), ...mutants.map((mutant) => () => plant(mutant))])
} finally {
  await pattern.remove()
}

if (asked.length === 0) {
  const blind = (Object.keys(CHECKS) as Check[]).filter(
    (check) => !trials.some(({ foundBy }) => foundBy.includes(check)),
  )
  faults.push(...blind.map((check) => `${check} has found no planted fault: ${CHECKS[check]}`))
}
if (rows.length + trials.length === 0)
  faults.push('The run shows nothing: neither a layer nor a planted fault was tried.')
rows.sort((a, b) => layers.indexOf(a.layer) - layers.indexOf(b.layer))
const table = proofTable(rows, trials)
const path = join(ROOT, 'build/proof/proof.md')
await mkdir(join(ROOT, 'build/proof'), { recursive: true })
await writeFile(path, table)
console.log(`\n${table}\nwritten to build/proof/proof.md after ${seconds(begun)} s; seed ${seed}`)
for (const fault of faults) console.error(`\n${fault}`)
if (faults.length > 0) process.exitCode = 1

async function prove(layer: LayerName): Promise<void> {
  const from = performance.now()
  try {
    const report = await runLayer({ layer, scale, seed }, pattern.root, (share) => tell(layer, share))
    rows.push({ layer, seconds: seconds(from), report })
    faults.push(...faultsOf(report).map((fault) => `${layer}, seed ${seed}: ${fault}`))
  } catch (error) {
    rows.push({ layer, seconds: seconds(from) })
    faults.push(String(error))
  }
  tell(layer, 1)
}

async function plant(mutant: Mutant): Promise<void> {
  started++
  console.log(`${passed()}  planted fault ${started} of ${mutants.length}, in ${mutant.layer}: ${mutant.name}`)
  const trial = await tryMutant(mutant, pattern, seed)
  trials.push(trial)
  let found = 'found'
  if (!isFound(trial)) {
    const seen =
      trial.foundBy.length > 0 ? `only ${trial.foundBy.join(', ')} saw it` : (trial.error ?? 'no check saw it')
    faults.push(`not found by ${mutant.check} of ${mutant.layer}, seed ${seed}: ${mutant.name}: ${seen}`)
    found = `NOT FOUND (${seen})`
  }
  console.log(`${passed()}  ${found}, ${mutants.length - trials.length} left: ${mutant.name}`)
}

/** A line for each tenth. */
function tell(what: string, share: number): void {
  const before = shares.get(what) ?? 0
  shares.set(what, Math.max(before, share))
  if (Math.floor(share * 10) <= Math.floor(before * 10)) return
  console.log(`${passed()}  ${what.padEnd(9)} ${'#'.repeat(Math.floor(share * 10)).padEnd(10, '.')}`)
}

function chosen(): Chosen {
  try {
    return chosenBy(asked)
  } catch (error) {
    console.error((error as Error).message)
    process.exit(1)
  }
}

function passed(): string {
  return `${`${seconds(begun)}`.padStart(5)} s`
}

function seconds(since: number): number {
  return Math.round((performance.now() - since) / 1_000)
}

function positive(name: string, byDefault: number): number {
  const given = process.env[name]
  const value = given === undefined ? byDefault : Number(given)
  if (Number.isFinite(value) && value > 0) return value
  console.error(`${name} must be a positive number; seen: ${given}`)
  process.exit(1)
}
