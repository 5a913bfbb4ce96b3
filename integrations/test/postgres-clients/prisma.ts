import { execFile } from 'node:child_process'
import { existsSync } from 'node:fs'
import { copyFile, mkdir, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { pathToFileURL } from 'node:url'
import { promisify } from 'node:util'
import { npm, ROOT, run } from '../../../test/support/packed-package.js'
import type { AnyClient } from './client-on-trial.js'

const VERSION = '7.10.0'
const FOLDER = join(ROOT, `.cache/prisma-${VERSION}`)
const RECIPE = join(ROOT, 'integrations/recipes/transactions')

/** A project of its own, made once for a clone: its packages are 300 MB, and `npm ci` would wait for them. */
async function project(): Promise<void> {
  await mkdir(FOLDER, { recursive: true })
  for (const file of ['prisma.ts', 'schema.prisma']) await copyFile(join(RECIPE, file), join(FOLDER, file))
  if (existsSync(join(FOLDER, 'generated/client.ts'))) return
  const packages = ['prisma', '@prisma/client', '@prisma/adapter-pg'].map((name) => `${name}@${VERSION}`)
  await writeFile(join(FOLDER, 'package.json'), JSON.stringify({ private: true, type: 'module' }))
  await run(npm, ['install', '--no-audit', '--no-fund', '--ignore-scripts', ...packages], FOLDER)
  // It needs no engine to generate, but looks for one, and would download it.
  await promisify(execFile)(
    process.execPath,
    ['node_modules/prisma/build/index.js', 'generate', '--schema', 'schema.prisma'],
    {
      cwd: FOLDER,
      env: { ...process.env, PRISMA_SCHEMA_ENGINE_BINARY: process.execPath, CHECKPOINT_DISABLE: '1' },
    },
  )
}

/** What the compiler says of the recipe, where its client was generated. */
export async function mistakes(): Promise<string> {
  await project()
  const compilerOptions = {
    noEmit: true,
    rootDir: ROOT,
    paths: { 'once-per-key/postgres': [join(ROOT, 'adapters/postgres/index.ts')] },
  }
  await writeFile(
    join(FOLDER, 'tsconfig.json'),
    JSON.stringify({ extends: join(ROOT, 'tsconfig.json'), compilerOptions, include: ['prisma.ts'] }),
  )
  const tsc = [join(ROOT, 'node_modules/typescript/bin/tsc'), '-p', FOLDER]
  return run(process.execPath, tsc, FOLDER).catch((error: Error) => error.message)
}

export async function open(): Promise<AnyClient> {
  await project()
  const { prisma, pool, store, transactions } = await import(pathToFileURL(join(FOLDER, 'prisma.ts')).href)
  return {
    store,
    transactions,
    isolation: {
      'repeatable read': { isolationLevel: 'RepeatableRead' },
      serializable: { isolationLevel: 'Serializable' },
    },
    query: (tx, text) => (/^(SELECT|SHOW)/.test(text) ? tx.$queryRawUnsafe(text) : tx.$executeRawUnsafe(text)),
    savepoint: (tx, work) => tx.$transaction(work),
    sqlStateOf(error) {
      const { meta } = error as { meta?: { driverAdapterError?: unknown } }
      const inner = (meta?.driverAdapterError ?? error) as { cause?: { originalCode?: unknown } }
      return inner.cause?.originalCode
    },
    endsTheProcess: false,
    close: () => Promise.all([prisma.$disconnect(), pool.end()]),
  }
}
