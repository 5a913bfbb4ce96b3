import { spawn, spawnSync } from 'node:child_process'
import { mkdtemp, rm, symlink, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { expect, onTestFinished, test, vi } from 'vitest'
import { ROOT } from '../support/packed-package.js'

// Each stage is a process or two, and more slowly so on a busy machine.
vi.setConfig({ testTimeout: 120_000 })

const PASSES = 'node -e 0'

/** A project of the same stages, each of which takes no time; what `npm test` says of it, and how it ends. */
async function testCommand(scripts: Readonly<Record<string, string>>, test: string) {
  const project = await mkdtemp(join(tmpdir(), 'once-per-key-'))
  onTestFinished(() => rm(project, { recursive: true, force: true }))
  const stages = { lint: PASSES, typecheck: PASSES, 'build:code': PASSES }
  await writeFile(join(project, 'package.json'), JSON.stringify({ private: true, scripts: { ...stages, ...scripts } }))
  await writeFile(join(project, 'one.test.js'), `import { test } from 'vitest'\n${test}`)
  await symlink(join(ROOT, 'node_modules'), join(project, 'node_modules'), 'junction')

  const child = spawn(process.execPath, [join(ROOT, 'scripts/test.mjs')], { cwd: project })
  let said = ''
  for (const stream of [child.stdout, child.stderr]) {
    stream.setEncoding('utf8').on('data', (text) => {
      said += text
    })
  }
  const code = await new Promise((resolve) => child.once('close', resolve))
  return { code, said, stages: [...said.matchAll(/^ *\d+ s {2}(.*)/gm)].map(([, line]) => line) }
}

test('npm test says when each stage begins and how long it took, and ends with what all of them make', async () => {
  const { code, stages, said } = await testCommand({}, "test('works', () => {})")
  expect(code, said).toBe(0)
  for (const name of ['lint', 'types', 'build', 'tests']) {
    expect(stages).toContainEqual(expect.stringMatching(new RegExp(`^${name} +…$`)))
    expect(stages).toContainEqual(expect.stringMatching(new RegExp(`^${name} +passed in \\d+ s$`)))
  }
  expect(stages.at(-1)).toMatch(/^all +passed$/)
})

test('a stage that fails shows what it printed and the command that prints it again, and no tests run', async () => {
  const script = `node -e "console.log('said on stdout'); console.error('said on stderr'); process.exit(3)"`
  const { code, stages, said } = await testCommand({ 'build:code': script }, "test('works', () => {})")
  expect(code).toBe(1)
  expect(said).toContain('said on stdout')
  expect(said).toContain('said on stderr')
  expect(stages.at(-1)).toMatch(/^build +failed: npm run --silent build:code$/)
  expect(stages.join()).not.toMatch(/\btests\b/)
})

test('a test that fails fails npm test', async () => {
  const { code, stages } = await testCommand({}, "test('breaks', () => { throw new Error('broken') })")
  expect(code).toBe(1)
  expect(stages.at(-1)).toMatch(/^tests +failed: npm exec -- vitest run$/)
})

test.each([
  ['test.mjs', 'http', 'it takes none'],
  ['test-everything.mjs', '--reset', 'it takes rest'],
  ['check-package.mjs', 'types', 'it takes none'],
  ['docs/blocks.mjs', 'README.md', 'it takes none'],
  ['docs/options.mjs', '--chek', 'it takes --check'],
  ['start.mjs', '--port=80', 'it takes none'],
  ['integrations.mjs', 'prisma', 'There is no part prisma'],
])('an argument that %s does not know is a mistake, before anything is done: %s', (script, argument, told) => {
  const { status, stdout, stderr } = spawnSync(process.execPath, [join(ROOT, 'scripts', script), argument])
  expect([status, `${stdout}`]).toEqual([2, ''])
  expect(`${stderr}`).toContain(told)
  expect(`${stderr}`).toContain(argument)
})
