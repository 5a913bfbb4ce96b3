import { mkdir, readFile, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { afterAll, beforeAll, describe, expect, test, vi } from 'vitest'
import { npm, packPackage, run } from '../../../test/support/packed-package.js'

// npm asks the registry for what each application has; nothing is downloaded or installed.
vi.setConfig({ testTimeout: 240_000, hookTimeout: 60_000 })

/** What applications have, also of packages whose newer versions the library works with. Each stays as it is. */
const APPLICATIONS = [
  {
    name: 'clients',
    has: ['redis@4', 'ioredis@4', 'better-sqlite3@9', 'pg@8.0.0', 'mysql2@2', 'zod@3.24.4', '@opentelemetry/api@1.4.0'],
  },
  {
    name: 'frameworks',
    has: ['express@4.17.1', 'fastify@4.0.0', 'koa@2.0.0', 'hono@3.0.0', 'rxjs@6', 'better-sqlite3@10', 'zod@3.20.0'],
  },
  { name: 'nest', has: ['@nestjs/common@9', '@nestjs/core@9', 'rxjs@7.1.0', '@opentelemetry/api@1.0.0'] },
] as const

const FLAGS = ['--package-lock-only', '--ignore-scripts', '--no-audit', '--no-fund', '--prefer-offline']

let packed: Awaited<ReturnType<typeof packPackage>>
beforeAll(async () => {
  packed = await packPackage()
})
afterAll(() => packed?.remove())

describe.each(APPLICATIONS)('an application with $has', ({ name, has }) => {
  test.each([
    { as: 'pinned', flags: ['--save-exact'] },
    { as: 'in a range that newer ones fit', flags: [] },
  ])('$as gets the package, and all else keeps its version', async ({ as, flags }) => {
    const project = join(packed.folder, `${name}-${as.replaceAll(' ', '-')}`)
    await mkdir(project)
    await writeFile(join(project, 'package.json'), '{ "private": true }')
    await run(npm, ['install', ...FLAGS, ...flags, ...has], project)
    const before = await versionsIn(project)
    await run(npm, ['install', ...FLAGS, packed.tarball], project)
    const after = await versionsIn(project)
    expect(after).toMatchObject(before)
    const added = Object.keys(after).filter((path) => !(path in before))
    expect(added.map((path) => path.replace(/.*node_modules\//, '')).sort()).toEqual(['lru-cache', 'once-per-key'])
  })
})

/** By their paths. */
async function versionsIn(project: string): Promise<Readonly<Record<string, string>>> {
  const { packages } = JSON.parse(await readFile(join(project, 'package-lock.json'), 'utf8')) as {
    packages: Record<string, { version?: string }>
  }
  const installed = Object.entries(packages).filter(([path]) => path !== '')
  return Object.fromEntries(installed.map(([path, { version = '' }]) => [path, version]))
}
