// `npm test`: every check, with a line for each stage. What a stage prints is shown when it fails; the tests print as they run.
import { spawn } from 'node:child_process'
import { readFileSync, rmSync } from 'node:fs'

const npm = process.platform === 'win32' ? 'npm.cmd' : 'npm'
const started = performance.now()
/** Costs a contributor's time, and changes slowly. */
const COVERAGE = process.env.CI ? ['--coverage'] : []
/** Written by `test/support/failed-files.ts`. */
const FAILED_FILES = 'node_modules/.failed-tests.json'
/** More is not an accident. */
const MOST_TRIED_AGAIN = 4

/** Each lane is one stage after another, beside the other lane. */
await Promise.all([
  inTurn(['lint', 'run', '--silent', 'lint'], ['types', 'run', '--silent', 'typecheck']),
  inTurn(['build', 'run', '--silent', 'build'], ['package', 'run', '--silent', 'check:package']),
])
await tests()
tell('all', 'passed')

/** Files that failed are run once more when nothing else runs: real kills, cuts and clocks suffer from a busy machine. */
async function tests() {
  rmSync(FAILED_FILES, { force: true })
  if (await passes('tests', ['exec', '--', 'vitest', 'run', ...COVERAGE], 'inherit')) return
  const failed = failedFiles()
  if (failed.length === 0 || failed.length > MOST_TRIED_AGAIN) process.exit(1)
  tell('again', `alone: ${failed.join(', ')}`)
  await stage('again', ['exec', '--', 'vitest', 'run', '--maxWorkers', '1', ...failed], 'inherit')
}

async function inTurn(...stages) {
  for (const [name, ...args] of stages) await stage(name, args, 'pipe')
}

async function stage(name, args, output) {
  if (!(await passes(name, args, output))) process.exit(1)
}

async function passes(name, args, output) {
  tell(name, '…')
  const begun = performance.now()
  const child = spawn(npm, args, { stdio: ['ignore', output, output] })
  let said = ''
  for (const stream of [child.stdout, child.stderr]) {
    stream?.on('data', (bytes) => {
      said += bytes
    })
  }
  const code = await new Promise((resolve) => child.once('close', resolve))
  if (code !== 0) process.stderr.write(said)
  tell(name, code === 0 ? `passed in ${seconds(begun)} s` : `failed: npm ${args.join(' ')}`)
  return code === 0
}

/** None if the run failed otherwise, for example by an error outside of the tests. */
function failedFiles() {
  try {
    return JSON.parse(readFileSync(FAILED_FILES, 'utf8'))
  } catch {
    return []
  }
}

function tell(name, what) {
  console.log(`${String(seconds(started)).padStart(4)} s  ${name.padEnd(8)} ${what}`)
}

function seconds(since) {
  return Math.round((performance.now() - since) / 1_000)
}
