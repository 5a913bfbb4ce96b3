import { cp, mkdir, readFile, writeFile } from 'node:fs/promises'
import { dirname, join, relative } from 'node:path'
import { afterAll, beforeAll, describe, expect, test, vi } from 'vitest'
import { BLOCKS, PAGES } from '../../../test/docs/pages.js'
import { expectPrinted, printedBy } from '../../../test/docs/printed.js'
import { ROOT, run } from '../../../test/support/packed-package.js'
import { pastedProject, serveFile } from '../support/pasted-project.js'

// Installing and compiling take seconds, and more on a busy machine.
vi.setConfig({ testTimeout: 120_000, hookTimeout: 120_000 })

let pasted: Awaited<ReturnType<typeof pastedProject>>
let project: string

beforeAll(async () => {
  pasted = await pastedProject()
  project = pasted.folder
})
afterAll(() => pasted?.remove())

describe('the README’s file, pasted into an empty project with the packed package', () => {
  const [console = ''] = BLOCKS.filter(({ page, language }) => page === 'README.md' && language === 'console').map(
    ({ code }) => code,
  )
  const commands = console.split(/^\$ /m).filter((each) => each !== '')

  test('prints what the README shows for its three requests, and pays once', async () => {
    const [file] = BLOCKS.filter(({ file }) => file === 'examples/minimal/server.mjs')
    await writeFile(join(project, 'server.mjs'), file?.code ?? '')
    const { port, said } = await serveFile(join(project, 'server.mjs'))

    expect(commands).toHaveLength(3)
    for (const command of commands) {
      const [line = '', ...shown] = command.split('\n').filter((each) => each !== '')
      expectPrinted(await printedBy({ port, ...parsed(line) }), shown)
    }
    expect(said().match(/paying 5000/g)).toHaveLength(1)
    expect(said()).not.toContain('9900')
  })

  test('is the one that examples/minimal starts by one command', async () => {
    const folder = join(project, 'minimal')
    await cp(join(ROOT, 'examples/minimal'), folder, { recursive: true })
    const { scripts, dependencies } = JSON.parse(await readFile(join(folder, 'package.json'), 'utf8'))
    const { version } = JSON.parse(await readFile(join(ROOT, 'package.json'), 'utf8'))
    expect(scripts.start).toBe('node server.mjs')
    expect(dependencies['once-per-key']).toBe(`^${version}`)
    const { port } = await serveFile(join(folder, 'server.mjs'))
    const [first = ''] = commands
    expect((await printedBy({ port, ...parsed(first) }))[0]).toBe('HTTP/1.1 201 Created')
  })
})

/** They import what Prisma generates: test/postgres-clients compiles them. */
const GENERATES = ['prisma.ts', 'mysql-prisma.ts'].map((file) => `integrations/recipes/transactions/${file}`)

test('the code of every page compiles where it is pasted, with the packed package', async () => {
  const sources: string[] = []
  for (const { path } of PAGES) {
    const folder = join(project, path.replace(/\W/g, '-'))
    for (const { file, language, code } of BLOCKS.filter(({ page }) => page === path)) {
      if (language !== 'ts' && language !== 'js') continue
      if (GENERATES.includes(file)) continue
      const copy = join(folder, file.replace(/^(examples|integrations)\//, ''))
      await mkdir(dirname(copy), { recursive: true })
      await writeFile(copy, code)
      sources.push(relative(project, copy))
    }
  }
  expect(sources.length).toBeGreaterThan(30)
  const compilerOptions = {
    module: 'NodeNext',
    target: 'ES2023',
    strict: true,
    noEmit: true,
    skipLibCheck: true,
    allowJs: true,
    checkJs: true,
    experimentalDecorators: true,
    types: ['node'],
  }
  await writeFile(join(project, 'multer.d.ts'), await readFile(join(ROOT, 'examples/recipes/multer.d.ts'), 'utf8'))
  await writeFile(
    join(project, 'tsconfig.json'),
    JSON.stringify({ compilerOptions, files: [...sources, 'multer.d.ts'] }),
  )
  await run(process.execPath, [join(ROOT, 'node_modules/typescript/bin/tsc'), '-p', '.'], project)
})

/** What a `curl` line sends. */
function parsed(line: string) {
  const [, path = ''] = /^curl -si localhost:3000(\S+)/.exec(line) ?? []
  const headers = Object.fromEntries(
    [...line.matchAll(/-H '([^:]+): ([^']+)'/g)].map(([, name, value]) => [name, value]),
  )
  const [, body = ''] = /-d '([^']+)'/.exec(line) ?? []
  return { path, headers, body }
}
