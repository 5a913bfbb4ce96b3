import { cp, mkdtemp, readFile, rm, symlink } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { expect, onTestFinished, test, vi } from 'vitest'
import { npm, ROOT, run } from '../support/packed-package.js'

// A build takes seconds, and more on a busy machine.
vi.setConfig({ testTimeout: 120_000 })

/** What is under version control, and goes into the package or makes it. */
const SOURCES = ['adapters', 'bin', 'examples', 'src', 'docs', 'CHANGELOG.md', 'LICENSE', 'README.md', 'package.json']
const SETTINGS = ['tsconfig.json', 'tsup.config.ts']

test('a checkout that nobody has built is packed whole', async () => {
  const checkout = await mkdtemp(join(tmpdir(), 'once-per-key-'))
  onTestFinished(() => rm(checkout, { recursive: true, force: true }))
  for (const name of [...SOURCES, ...SETTINGS]) await cp(join(ROOT, name), join(checkout, name), { recursive: true })
  await symlink(join(ROOT, 'node_modules'), join(checkout, 'node_modules'), 'junction')

  const [packed] = JSON.parse(await run(npm, ['pack', '--json', '--dry-run'], checkout)) as {
    files: { path: string }[]
  }[]
  const paths = packed?.files.map(({ path }) => path) ?? []
  const { exports } = JSON.parse(await readFile(join(ROOT, 'package.json'), 'utf8'))
  const entries = Object.keys(exports).filter((entry) => entry !== './package.json')
  expect(entries).toContain('./core')
  for (const name of entries) {
    const entry = name === '.' ? 'index' : name.slice(2)
    expect(paths).toEqual(expect.arrayContaining(['js', 'cjs', 'd.ts', 'd.cts'].map((kind) => `dist/${entry}.${kind}`)))
  }
})
