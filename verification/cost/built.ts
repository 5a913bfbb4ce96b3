import { mkdtemp, rm, symlink } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { build } from 'tsup'
import { afterAll } from 'vitest'

const ROOT = fileURLToPath(new URL('../..', import.meta.url))

/** A program of this folder, as plain JavaScript, until the tests of the file are over: `services`. */
export async function buildProgram(name: 'services'): Promise<string> {
  const folder = await mkdtemp(join(tmpdir(), 'once-per-key-cost-'))
  afterAll(() => rm(folder, { recursive: true, force: true }))
  await symlink(join(ROOT, 'node_modules'), join(folder, 'node_modules'), 'junction')
  await build({
    entry: { [name]: join(ROOT, `verification/cost/${name}.main.ts`) },
    ...{
      outDir: folder,
      config: false,
      silent: true,
      format: 'esm',
      target: 'node20',
      outExtension: () => ({ js: '.mjs' }),
    },
    noExternal: [/^once-per-key/],
    external: ['express', 'fastify', 'hono', 'ioredis', 'koa', 'koa-bodyparser', 'lru-cache', 'pg'],
  })
  return join(folder, `${name}.mjs`)
}
