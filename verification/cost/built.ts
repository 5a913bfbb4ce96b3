import { mkdtemp, rm, symlink } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { build } from 'tsup'
import { afterAll } from 'vitest'

const ROOT = fileURLToPath(new URL('../..', import.meta.url))

/** A program as plain JavaScript, until the tests of the file are over. `source`: such as `cost/services`, for its `.main.ts`. */
export async function buildProgram(source: string): Promise<string> {
  const folder = await mkdtemp(join(tmpdir(), 'once-per-key-cost-'))
  afterAll(() => rm(folder, { recursive: true, force: true }))
  await symlink(join(ROOT, 'node_modules'), join(folder, 'node_modules'), 'junction')
  await build({
    entry: { program: join(ROOT, `verification/${source}.main.ts`) },
    ...{
      outDir: folder,
      config: false,
      silent: true,
      format: 'esm',
      target: 'node20',
      outExtension: () => ({ js: '.mjs' }),
    },
    noExternal: [/^once-per-key/],
    external: [/^(?!once-per-key)[^./]/],
  })
  return join(folder, 'program.mjs')
}
