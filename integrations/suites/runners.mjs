import { spawnSync } from 'node:child_process'
import { existsSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'

const NODE_REPORTER = new URL('node-reporter.mjs', import.meta.url).href
const MOUNT_IN_VITE = fileURLToPath(new URL('mount-in-vite.mjs', import.meta.url))
const MOUNT_IN_JEST = fileURLToPath(new URL('mount-in-jest.cjs', import.meta.url))

/** How long a whole suite may take, one file of `node:test`, and one test of it by itself. */
const SUITE_MS = 40 * 60_000
const FILE_MS = 60_000
const TEST_MS = 20_000

/** Runs a suite by the runner that its package names; returns its tests: `name`, and `outcome` (`pass`, `fail`, `skipped`). */
export function runnerOf(folder) {
  const { scripts = {} } = JSON.parse(readFileSync(join(folder, 'package.json'), 'utf8'))
  const script = [scripts['test:unit'], scripts.unit, scripts.test].find((command) => RUNNER.test(command ?? ''))
  const [, runner, rest] = RUNNER.exec(script ?? '') ?? []
  if (runner === undefined) throw new Error(`${folder}: no script for unit tests that names ${Object.keys(RUNNERS)}.`)
  return (trial) => RUNNERS[runner]({ ...trial, words: rest.trim().split(/\s+/) })
}

const RUNNER = /\b(vitest|jest|mocha|borp|node --test)\b(.*)/

const RUNNERS = { vitest, jest, mocha, borp: nodeTest, 'node --test': nodeTest }

/** Where a test hangs, its file is ended, and those behind it are run one by one, as they are known from `before`. */
function nodeTest({ folder, env, results, before }) {
  const run = (limitMs, ...words) => {
    rmSync(results, { force: true })
    const reporter = [`--test-reporter=${NODE_REPORTER}`, `--test-reporter-destination=${results}`]
    start(folder, env, process.execPath, [...reporter, ...words], limitMs)
    return nodeResults(results, folder)
  }
  const tests = run(SUITE_MS, '--test', `--test-timeout=${FILE_MS}`, '--test-concurrency=4', ...testFilesIn(folder))
  const reached = new Set(tests.map((test) => test.name))
  return [...tests, ...before.filter(({ name }) => !reached.has(name)).map(({ name }) => alone(name, folder, run))]
}

function alone(name, folder, run) {
  const [file, title = ''] = name.split(' › ')
  const pattern = `^${title.replace(/[.*+?^${}()|[\]\\/]/g, '\\$&')}$`
  const found = run(TEST_MS, `--test-name-pattern=/${pattern}/`, join(folder, file)).find((test) => test.name === name)
  return found?.outcome === 'pass' ? found : { name, outcome: 'fail' }
}

/** A run that is ended by its limit has perhaps not told all, and a file that was not loaded tells nothing. */
function nodeResults(results, folder) {
  const lines = existsSync(results) ? readFileSync(results, 'utf8').split('\n').slice(0, -1) : []
  return lines.map((line) => JSON.parse(line)).map(({ name, outcome }) => ({ name: name.replace(folder, ''), outcome }))
}

function testFilesIn(folder) {
  return readdirSync(folder, { recursive: true })
    .filter((name) => /\.test\.[cm]?js$/.test(name) && !name.includes('node_modules'))
    .map((name) => join(folder, name))
}

function mocha({ folder, env, results, words }) {
  const own = words.filter((word, i) => word !== '--reporter' && words[i - 1] !== '--reporter')
  start(folder, env, bin(folder, 'mocha'), [...own, '--reporter', 'json', '--reporter-option', `output=${results}`])
  const { passes, failures, pending } = JSON.parse(readFileSync(results, 'utf8'))
  const named = (outcome) => (test) => ({ name: test.fullTitle, outcome })
  return [...passes.map(named('pass')), ...failures.map(named('fail')), ...pending.map(named('skipped'))]
}

function jest({ folder, env, results, isMounted }) {
  const mount = isMounted ? ['--setupFiles', MOUNT_IN_JEST] : []
  start(folder, env, bin(folder, 'jest'), [
    '--json',
    `--outputFile=${results}`,
    '--coverage=false',
    '--forceExit',
    ...mount,
  ])
  return resultsOfJest(folder, results)
}

/** vitest transforms modules by itself: its configuration gets a plugin that changes Hono's. */
function vitest({ folder, env, results, isMounted }) {
  const own = readFileSync(join(folder, 'vitest.config.ts'), 'utf8')
  const config = `${results}.config.mjs`
  writeFileSync(config, isMounted ? configWithMount(folder) : configOf(folder))
  const main = own.includes("name: 'main'") ? ['--project', 'main'] : [] // Of Hono's, the others are for other runtimes.
  const flags = [
    '--root',
    folder,
    '--config',
    config,
    '--coverage.enabled=false',
    '--reporter=json',
    '--outputFile',
    results,
  ]
  start(folder, env, bin(folder, 'vitest'), ['run', ...main, ...flags])
  return resultsOfJest(folder, results)
}

function configOf(folder) {
  return `export { default } from ${JSON.stringify(join(folder, 'vitest.config.ts'))}\n`
}

function configWithMount(folder) {
  return `import theirs from ${JSON.stringify(join(folder, 'vitest.config.ts'))}
import { mount } from ${JSON.stringify(MOUNT_IN_VITE)}
const server = { deps: { inline: [/node_modules.hono./] } }
export default { ...theirs, plugins: [...(theirs.plugins ?? []), mount], test: { ...theirs.test, server } }
`
}

/** vitest writes them in the same form. */
function resultsOfJest(folder, results) {
  const { testResults } = JSON.parse(readFileSync(results, 'utf8'))
  return testResults.flatMap(({ name: file, assertionResults }) =>
    assertionResults.map(({ fullName, status }) => ({
      name: `${file.replace(folder, '')} › ${fullName}`,
      outcome: OUTCOMES.get(status) ?? 'skipped',
    })),
  )
}

const OUTCOMES = new Map([
  ['passed', 'pass'],
  ['failed', 'fail'],
])

function bin(folder, name) {
  return join(folder, 'node_modules/.bin', name)
}

/** That tests fail is a result; that nothing was written is found out by whoever reads it. */
function start(folder, env, command, args, timeout = SUITE_MS) {
  const { error } = spawnSync(command, args, { cwd: folder, env, stdio: STDIO, timeout })
  if (error && error.code !== 'ETIMEDOUT') throw error
}

/** `SUITE_OUTPUT=1` shows what the suites print. */
const STDIO = process.env.SUITE_OUTPUT === undefined ? 'ignore' : 'inherit'
