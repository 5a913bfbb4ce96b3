import { cp, mkdir, mkdtemp, readFile, rm, symlink, writeFile } from 'node:fs/promises'
import { dirname, join } from 'node:path'
import { afterAll, beforeAll, describe, expect, test, vi } from 'vitest'
import { installInto, packPackage, run } from '../../../test/support/packed-package.js'
import { installed } from '../support/installed.js'
import { findUnexportedTypes, writeConsumers } from './named-types.js'

// A compiler takes seconds, and more on a busy machine.
vi.setConfig({ testTimeout: 240_000, hookTimeout: 120_000 })

/** The least that the page names, and the newest, with those between that differ. */
const COMPILERS = ['typescript53', 'typescript59', 'typescript', 'typescript7']
const BESIDE = [
  '@nestjs/common',
  '@nestjs/core',
  '@opentelemetry/api',
  '@types/koa',
  '@types/node',
  'fastify',
  'hono',
  'rxjs',
  'zod',
]

let packed: Awaited<ReturnType<typeof packPackage>>
let project: string
beforeAll(async () => {
  packed = await packPackage()
  await installInto(packed.folder, packed.tarball, 'module')
  project = await mkdtemp(join(packed.folder, 'project-'))
  // The package looks for its peers where it is itself.
  for (const name of ['once-per-key', 'lru-cache']) {
    await cp(join(packed.folder, 'node_modules', name), join(project, 'node_modules', name), { recursive: true })
  }
  for (const name of BESIDE) {
    const link = join(project, 'node_modules', name)
    await mkdir(dirname(link), { recursive: true })
    await symlink(installed(name), link, 'junction')
  }
})
afterAll(() => packed?.remove())

/** The types of each entry, by what a user imports. */
async function readTypes(): Promise<Readonly<Record<string, string>>> {
  const home = join(project, 'node_modules/once-per-key')
  const { name, exports } = JSON.parse(await readFile(join(home, 'package.json'), 'utf8'))
  const entries = Object.entries<{ require: { types: string } }>(exports).filter(
    ([entry]) => entry !== './package.json',
  )
  return Object.fromEntries(entries.map(([entry, { require }]) => [join(name, entry), join(home, require.types)]))
}

test('each entry exports the types of what its functions take and return', async () => {
  expect(findUnexportedTypes(Object.values(await readTypes()))).toEqual({})
})

describe('with `declaration`', () => {
  beforeAll(async () => {
    const compilerOptions = {
      target: 'ES2022',
      module: 'NodeNext',
      types: ['node'],
      strict: true,
      declaration: true,
      emitDeclarationOnly: true,
      rootDir: 'consumers',
      skipLibCheck: true, // What an older compiler finds in the types of frameworks is theirs.
    }
    const consumers = writeConsumers(await readTypes())
    expect(
      Object.values(consumers)
        .join('\n')
        .match(/^export/gm)?.length,
    ).toBeGreaterThan(200)
    await mkdir(join(project, 'consumers'))
    for (const [i, text] of Object.values(consumers).entries()) {
      await writeFile(join(project, 'consumers', `${i}.ts`), text)
    }
    await writeFile(join(project, 'package.json'), '{ "type": "module" }')
    await writeFile(join(project, 'tsconfig.json'), JSON.stringify({ compilerOptions, include: ['consumers'] }))
  })

  test.each(COMPILERS)('%s writes the types of whatever a module makes of an entry', async (compiler) => {
    const out = join(project, compiler)
    await run(process.execPath, [join(installed(compiler), 'bin/tsc'), '--outDir', out], project)
    expect(await readFile(join(out, '0.d.ts'), 'utf8')).toContain('idempotency_inspect')
    await rm(out, { recursive: true })
  })
})
