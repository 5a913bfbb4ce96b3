// `npm run test:everything`: `npm test`, and all that takes longer. With `-- rest`: without `npm test`, for who has just run it.
import { argumentsOf, npm, stage, tell } from './stages.mjs'

const isRest = argumentsOf('rest').length > 0
const run = (name, ...args) => ['run', '--silent', name, ...(args.length > 0 ? ['--', ...args] : [])]

/** In this order: what is short, and what others rest on, first. */
const STAGES = [
  ...(isRest ? [] : [['npm test', ['test']]]),
  ['build', run('build')],
  ['package', run('check:package')],
  ['what takes long', run('test:long')],
  ['integrations', run('test:integrations')],
  ['browser', run('test:browser')],
  ['other Nodes', run('test:nodes', '--config', 'vitest.quick.config.ts')],
  ['coverage', run('test:coverage')],
  ['a longer proof, on each Node', run('prove:nodes', 'layers'), { PROVE_SCALE: '0.1' }],
]

for (const [index, [name, args, env]] of STAGES.entries()) {
  tell(`stage ${index + 1} of ${STAGES.length}`, `${name}: ${npm} ${args.join(' ')}`)
  await stage(name, args, { env })
}
tell('all', `passed, ${STAGES.length} stages`)
