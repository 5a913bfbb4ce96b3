import { execFile } from 'node:child_process'
import { createHash } from 'node:crypto'
import { existsSync, readFileSync } from 'node:fs'
import { mkdir, mkdtemp, rename, rm, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { pathToFileURL } from 'node:url'
import { promisify } from 'node:util'
import { npm, ROOT, run } from '../../../test/support/packed-package.js'

const PACKAGES = ['prisma', '@prisma/client', '@prisma/adapter-pg', '@prisma/adapter-mariadb'].map(
  (name) => `${name}@7.10.0`,
)
const text = (file: string) => readFileSync(join(ROOT, file), 'utf8')
const SCHEMA = text('integrations/recipes/transactions/schema.prisma')
/** For each provider, its recipe beside the client that Prisma generates for it. */
const RECIPES = {
  postgresql: text('integrations/recipes/transactions/prisma.ts'),
  mysql: text('integrations/recipes/transactions/mysql-prisma.ts'),
}
type Provider = keyof typeof RECIPES

const VERSION = createHash('sha256')
  .update(JSON.stringify([PACKAGES, SCHEMA, RECIPES]))
  .digest('hex')
  .slice(0, 8)
/** A project of its own, made once for a clone: its packages are 300 MB, and `npm ci` would wait for them. */
const PROJECT = join(ROOT, `.cache/prisma-${VERSION}`)

export async function loadRecipe<Recipe>(provider: Provider): Promise<Recipe> {
  await makeProject()
  return import(pathToFileURL(join(PROJECT, provider, 'recipe.ts')).href)
}

/** What the compiler says of the recipes; the empty text if nothing. */
export async function mistakesInRecipes(): Promise<string> {
  await makeProject()
  const entries = ['mysql', 'postgres'].map((name) => [
    `once-per-key/${name}`,
    [join(ROOT, `adapters/${name}/index.ts`)],
  ])
  const compilerOptions = { noEmit: true, rootDir: ROOT, paths: Object.fromEntries(entries) }
  await writeFile(
    join(PROJECT, 'tsconfig.json'),
    JSON.stringify({ extends: join(ROOT, 'tsconfig.json'), compilerOptions, include: ['*/recipe.ts'] }),
  )
  const tsc = [join(ROOT, 'node_modules/typescript/bin/tsc'), '-p', PROJECT]
  return run(process.execPath, tsc, PROJECT).catch((error: Error) => error.message)
}

/** Whole, or not at all: another process may make it too. */
async function makeProject(): Promise<void> {
  if (existsSync(PROJECT)) return
  await mkdir(join(ROOT, '.cache'), { recursive: true })
  const made = await mkdtemp(`${PROJECT}-`)
  await writeFile(join(made, 'package.json'), JSON.stringify({ private: true, type: 'module' }))
  await run(npm, ['install', '--no-audit', '--no-fund', '--ignore-scripts', ...PACKAGES], made)
  for (const provider of Object.keys(RECIPES) as Provider[]) {
    const folder = join(made, provider)
    await mkdir(folder)
    await writeFile(join(folder, 'recipe.ts'), RECIPES[provider])
    await writeFile(join(folder, 'schema.prisma'), SCHEMA.replace('"postgresql"', `"${provider}"`))
    await generate(made, folder)
  }
  await rename(made, PROJECT).catch(() => rm(made, { recursive: true, force: true }))
}

/** It needs no engine for this, but looks for one, and would download it. */
async function generate(project: string, folder: string): Promise<void> {
  const command = [join(project, 'node_modules/prisma/build/index.js'), 'generate', '--schema', 'schema.prisma']
  const env = { ...process.env, PRISMA_SCHEMA_ENGINE_BINARY: process.execPath, CHECKPOINT_DISABLE: '1' }
  await promisify(execFile)(process.execPath, command, { cwd: folder, env })
}
