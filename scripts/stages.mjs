// What runs one stage after another, with a line when each begins and ends. A stage that fails ends all.
import { spawn } from 'node:child_process'

const started = performance.now()
export const npm = process.platform === 'win32' ? 'npm.cmd' : 'npm'

/** What a stage prints is shown as it runs (`inherit`), or when it fails (`pipe`). */
export async function stage(name, args, { output = 'inherit', env = {} } = {}) {
  tell(name, '…')
  const begun = performance.now()
  const child = spawn(npm, args, { stdio: ['ignore', output, output], env: { ...process.env, ...env } })
  let said = ''
  for (const stream of [child.stdout, child.stderr]) {
    stream?.on('data', (bytes) => {
      said += bytes
    })
  }
  const code = await new Promise((resolve) => child.once('close', resolve))
  if (code !== 0) process.stderr.write(said)
  tell(name, code === 0 ? `passed in ${seconds(begun)} s` : `failed: npm ${args.join(' ')}`)
  if (code !== 0) process.exit(1)
}

export function tell(name, what) {
  console.log(`${String(seconds(started)).padStart(4)} s  ${name.padEnd(8)} ${what}`)
}

/** For a program that takes none, or these alone: an argument that nobody reads is a mistake. */
export function argumentsOf(...known) {
  const given = process.argv.slice(2)
  const unknown = given.filter((argument) => !known.includes(argument))
  if (unknown.length === 0) return given
  const takes = known.length > 0 ? `it takes ${known.join(', ')}` : 'it takes none'
  console.error(`Unknown argument: ${unknown.join(' ')}; ${takes}.`)
  process.exit(2)
}

function seconds(since) {
  return Math.round((performance.now() - since) / 1_000)
}
