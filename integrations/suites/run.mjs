// `npm run test:suites -- FOLDER…`, in `integrations`: runs the test suites of other projects, from checkouts of theirs with their
// packages installed: as they are, with an empty middleware in front of every application that they make, and with the packed binding
// in its place, without a key and with a key on every request. Prints for each a row of the table in verification/results.md, and the
// tests that passed with the empty middleware and not with the binding. It needs `npm run build` at the root.
import { execFileSync } from 'node:child_process'
import { mkdirSync, mkdtempSync, readFileSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join, resolve } from 'node:path'
import { fileURLToPath } from 'node:url'
import { pack } from '../../scripts/pack.mjs'
import { runnerOf } from './runners.mjs'

const ROOT = fileURLToPath(new URL('../../', import.meta.url))
/** Inside of the root, whose packages it finds; of this process, since two may run at once. */
const PACKED = join(ROOT, 'build/suites', String(process.pid))
const MOUNT = fileURLToPath(new URL('mount.cjs', import.meta.url))

const folders = process.argv.slice(2).map((folder) => resolve(folder))
if (folders.length === 0) {
  console.error('Which suites? Name the folders of their checkouts, with their packages installed.')
  process.exit(2)
}

installPacked()
process.on('exit', () => rmSync(PACKED, { recursive: true, force: true }))
const rows = folders.map(compare)
console.log(
  '\n| suite | tests | passed without | with an empty middleware | with the binding, no key | each request with a key |',
)
console.log('| --- | --- | --- | --- | --- | --- |')
for (const row of rows) console.log(`| ${row.join(' | ')} |`)

/** The row of a suite. */
function compare(folder) {
  const { name, version } = JSON.parse(readFileSync(join(folder, 'package.json'), 'utf8'))
  const suite = `${name} ${version}`
  const without = outcomesOf(folder, suite, undefined)
  const unbound = outcomesOf(folder, suite, 'unbound')
  const others = [outcomesOf(folder, suite, 'none', unbound), outcomesOf(folder, suite, 'each', unbound)]
  return [suite, without.length, ...[without, unbound, ...others].map((tests) => passedIn(tests).length)]
}

/** Names the tests that passed `before`, and do not now. */
function outcomesOf(folder, suite, keys, before = []) {
  const { tests: all, applications, runs } = run(folder, keys, before)
  const tests = all.filter(({ outcome }) => outcome !== 'skipped')
  const passed = passedIn(tests)
  const mounted = keys === undefined ? 'without' : `${keys}: ${applications} applications, ${runs} runs`
  console.log(`${suite}, ${mounted}: ${passed.length} of ${tests.length} passed`)
  if (tests.length === 0) throw new Error(`No test of ${suite} has run.`)
  if (keys !== undefined && applications === 0) throw new Error(`No application of ${suite} had the binding.`)
  if (keys === 'each' && runs === 0) throw new Error(`No request of ${suite} had a key.`)
  for (const test of missingIn(passed, passedIn(before))) console.log(`  passed before: ${test}`)
  return tests
}

function passedIn(tests) {
  return tests.filter(({ outcome }) => outcome === 'pass').map(({ name }) => name)
}

/** Those of the names in `all` that `some` lacks; a name may be there twice. */
function missingIn(some, all) {
  const left = new Map()
  for (const name of some) left.set(name, (left.get(name) ?? 0) + 1)
  return all.filter((name) => {
    const count = left.get(name) ?? 0
    left.set(name, count - 1)
    return count <= 0
  })
}

function run(folder, keys, before) {
  const own = mkdtempSync(join(tmpdir(), 'once-per-key-suite-'))
  const counts = join(own, 'counts')
  const env = { ...process.env, NODE_ENV: 'test' }
  if (keys !== undefined) {
    const variables = { SUITE_KEYS: keys, SUITE_COUNTS: counts, SUITE_PACKED: PACKED, SUITE_FOLDER: folder }
    Object.assign(env, variables, { NODE_OPTIONS: `--require=${MOUNT}` })
  }
  try {
    const tests = runnerOf(folder)({
      folder,
      env,
      isMounted: keys !== undefined,
      before,
      results: join(own, 'results'),
    })
    const lines = linesOf(counts)
    const countOf = (what) => lines.filter((line) => line === what).length
    return { tests, applications: countOf('application'), runs: countOf('run') }
  } finally {
    rmSync(own, { recursive: true, force: true })
  }
}

function linesOf(file) {
  try {
    return readFileSync(file, 'utf8').split('\n')
  } catch {
    return [] // Nothing was counted.
  }
}

/** As its users get it: what `npm publish` would send, unpacked. */
function installPacked() {
  const folder = mkdtempSync(join(tmpdir(), 'once-per-key-'))
  try {
    const home = join(PACKED, 'node_modules/once-per-key')
    rmSync(home, { recursive: true, force: true })
    mkdirSync(home, { recursive: true })
    const { filename } = pack(folder)
    execFileSync('tar', ['-xzf', join(folder, filename), '-C', home, '--strip-components', '1'])
  } finally {
    rmSync(folder, { recursive: true, force: true })
  }
}
