// npm run test:nodes [-- what vitest takes]: the whole suite, or some files, on the other Nodes that the package supports, one line for each.
import { spawn, spawnSync } from 'node:child_process'
import { delimiter, dirname, join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { installNode, NODES, OWN_NODE } from './node-binary.mjs'

const ROOT = fileURLToPath(new URL('../../', import.meta.url))
const WINDOWS = process.platform === 'win32'

let failed = false
spawnSync('npm', ['run', '--silent', 'build'], { cwd: ROOT, stdio: 'inherit', shell: WINDOWS })
for (const version of NODES.filter((each) => each !== OWN_NODE)) {
  const { sentence, output } = await tryOn(version)
  if (output !== undefined) {
    failed = true
    console.error(output)
  }
  console.log(`Node ${version}: ${sentence}`)
}
process.exitCode = failed ? 1 : 0

async function tryOn(version) {
  const node = installNode(version)
  if (node === undefined) return { sentence: 'could not be installed', output: '' }
  const env = { ...process.env, PATH: `${dirname(node)}${delimiter}${process.env.PATH}` }
  const vitest = join(ROOT, 'node_modules/vitest/vitest.mjs')
  const run = await outputOf(node, [vitest, 'run', '--reporter=dot', ...process.argv.slice(2)], env)
  const sentence = [...run.output.matchAll(/^\s*(Test Files|Tests)\s+(.*)$/gm)].map(([, what, how]) => `${what} ${how}`)
  const seen = spawnSync(node, ['--version']).stdout.toString().trim()
  const ended = run.code === 0 ? 'passed' : `FAILED (exit code ${run.code})`
  return { sentence: [`${seen} ${ended}`, ...sentence].join(' · '), output: run.code === 0 ? undefined : run.output }
}

function outputOf(command, args, env) {
  return new Promise((resolve, reject) => {
    const child = spawn(command, args, { cwd: ROOT, env: { ...env, NO_COLOR: '1' }, stdio: ['ignore', 'pipe', 'pipe'] })
    let output = ''
    for (const stream of [child.stdout, child.stderr]) {
      stream.setEncoding('utf8').on('data', (text) => {
        output += text
      })
    }
    child.on('error', reject)
    child.on('close', (code) => resolve({ code, output }))
  })
}
