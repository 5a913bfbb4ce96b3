// `npm test`: every check, with a line for each stage. What a stage prints is shown when it fails; the tests print as they run.
import { spawn } from 'node:child_process'

const npm = process.platform === 'win32' ? 'npm.cmd' : 'npm'
const started = performance.now()

/** Each lane is one stage after another, beside the other lane. */
await Promise.all([
  inTurn(['lint', 'run', '--silent', 'lint'], ['types', 'run', '--silent', 'typecheck']),
  inTurn(['build', 'run', '--silent', 'build'], ['package', 'run', '--silent', 'check:package']),
])
await stage('tests', ['exec', '--', 'vitest', 'run', '--coverage'], 'inherit')
tell('all', 'passed')

async function inTurn(...stages) {
  for (const [name, ...args] of stages) await stage(name, args, 'pipe')
}

async function stage(name, args, output) {
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
  if (code === 0) return tell(name, `passed in ${seconds(begun)} s`)
  process.stderr.write(said)
  tell(name, `failed: npm ${args.join(' ')}`)
  process.exit(1)
}

function tell(name, what) {
  console.log(`${String(seconds(started)).padStart(4)} s  ${name.padEnd(8)} ${what}`)
}

function seconds(since) {
  return Math.round((performance.now() - since) / 1_000)
}
