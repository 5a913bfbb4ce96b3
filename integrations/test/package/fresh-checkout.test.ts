import { spawn } from 'node:child_process'
import { cp, mkdir, mkdtemp, readFile, rm, symlink, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { expect, onTestFinished, test, vi } from 'vitest'
import { npm, ROOT, run } from '../../../test/support/packed-package.js'

// A build takes seconds, and more on a busy machine.
vi.setConfig({ testTimeout: 120_000 })

/** What is under version control, and goes into the package or makes it. */
const SOURCES = [
  'adapters',
  'bin',
  'examples',
  'scripts',
  'src',
  'docs',
  'skills',
  'llms.txt',
  'CHANGELOG.md',
  'LICENSE',
  'README.md',
  'SECURITY.md',
  'package.json',
]
const SETTINGS = ['tsconfig.json', 'tsup.config.ts']

/** What a newcomer has after a clone and `npm ci`. */
async function checkOut(): Promise<string> {
  const checkout = await mkdtemp(join(tmpdir(), 'once-per-key-'))
  onTestFinished(() => rm(checkout, { recursive: true, force: true }))
  for (const name of [...SOURCES, ...SETTINGS]) await cp(join(ROOT, name), join(checkout, name), { recursive: true })
  await symlink(join(ROOT, 'node_modules'), join(checkout, 'node_modules'), 'junction')
  return checkout
}

test('a checkout that nobody has built is packed whole', async () => {
  const checkout = await checkOut()
  const [packed] = JSON.parse(await run(npm, ['pack', '--json', '--dry-run'], checkout)) as {
    files: { path: string }[]
  }[]
  const paths = packed?.files.map(({ path }) => path) ?? []
  const { exports } = JSON.parse(await readFile(join(ROOT, 'package.json'), 'utf8'))
  const entries = Object.keys(exports).filter((entry) => entry !== './package.json')
  expect(entries).toContain('./core')
  for (const name of entries) {
    const entry = name === '.' ? 'index' : name.slice(2).replaceAll('/', '-')
    expect(paths).toEqual(expect.arrayContaining(['js', 'cjs', 'd.ts', 'd.cts'].map((kind) => `dist/${entry}.${kind}`)))
  }
})

test('a checkout that nobody has built is started by one command, says that it builds, and keeps types that are there', async () => {
  const checkout = await checkOut()
  await mkdir(join(checkout, 'dist'))
  await writeFile(join(checkout, 'dist/index.d.ts'), 'export {}')

  const child = spawn(process.execPath, ['scripts/start.mjs'], {
    cwd: checkout,
    env: { ...process.env, PORT: '0', HOST: '' },
  })
  onTestFinished(() => void child.kill('SIGKILL'))
  let said = ''
  for await (const text of child.stdout.setEncoding('utf8')) {
    said += text
    if (/^curl .*\n/m.test(said)) break
  }
  expect(said).toMatch(/^building…\n/)
  const [origin = ''] = /http:\/\/[\w.]+:\d+/.exec(said) ?? []
  expect((await fetch(origin)).status).toBe(200)
  expect(await readFile(join(checkout, 'dist/index.d.ts'), 'utf8')).toBe('export {}')
})
