import { mkdtemp, rm, symlink } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { build } from 'tsup'

const ROOT = fileURLToPath(new URL('../..', import.meta.url))

export interface BuiltProgram {
  readonly file: string
  remove(): Promise<void>
}

/** Builds a program of the tests with today's sources of the package, once for many processes. */
export async function buildProgram(main: string, external: readonly string[]): Promise<BuiltProgram> {
  const folder = await mkdtemp(join(tmpdir(), 'once-per-key-program-'))
  await symlink(join(ROOT, 'node_modules'), join(folder, 'node_modules'), 'junction')
  await build({
    entry: { program: join(ROOT, main) },
    outDir: folder,
    outExtension: () => ({ js: '.mjs' }),
    format: 'esm',
    target: 'node20',
    external: [...external],
    noExternal: [/^once-per-key/],
    esbuildOptions(options) {
      options.alias = {
        'once-per-key': join(ROOT, 'src/index.ts'),
        'once-per-key/memory': join(ROOT, 'adapters/memory/index.ts'),
        'once-per-key/mysql': join(ROOT, 'adapters/mysql/index.ts'),
        'once-per-key/postgres': join(ROOT, 'adapters/postgres/index.ts'),
        'once-per-key/redis': join(ROOT, 'adapters/redis/index.ts'),
        'once-per-key/run': join(ROOT, 'src/run/index.ts'),
      }
    },
    config: false,
    silent: true,
    clean: false,
  })
  return { file: join(folder, 'program.mjs'), remove: () => rm(folder, { recursive: true, force: true }) }
}
