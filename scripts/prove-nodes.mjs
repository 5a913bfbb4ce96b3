// npm run prove:nodes [-- what `npm run prove` takes]: the proof, as it is built, on each Node that the package supports, with one seed.
import { spawnSync } from 'node:child_process'
import { installNode, NODES, OWN_NODE } from '../test/support/node-binary.mjs'

const { PROVE_SEED = `${Date.now() % 1_000_000_007}` } = process.env
const ends = NODES.map((version) => {
  const node = version === OWN_NODE ? process.execPath : installNode(version)
  if (node === undefined) return `Node ${version}: could not be installed`
  const args = ['build/proof/prove.js', ...process.argv.slice(2)]
  const { status } = spawnSync(node, args, { stdio: 'inherit', env: { ...process.env, PROVE_SEED } })
  return `Node ${version}: ${status === 0 ? 'passed' : `FAILED, seed ${PROVE_SEED}`}`
})
console.log(ends.join('\n'))
process.exitCode = ends.every((end) => end.endsWith('passed')) ? 0 : 1
