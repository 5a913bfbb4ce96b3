// `npm test`: what one runs before each push, with a line for each stage.
import { argumentsOf, stage, tell } from './stages.mjs'

argumentsOf()
const quietly = { output: 'pipe' }

/** Each lane is one stage after another, beside the other lane. */
await Promise.all([lintAndTypes(), stage('build', ['run', '--silent', 'build:code'], quietly)])
await stage('tests', ['exec', '--', 'vitest', 'run'], { env: { ONCE_PER_KEY_TESTS: 'everyday' } })
tell('all', 'passed')

async function lintAndTypes() {
  await stage('lint', ['run', '--silent', 'lint'], quietly)
  await stage('types', ['run', '--silent', 'typecheck'], quietly)
}
