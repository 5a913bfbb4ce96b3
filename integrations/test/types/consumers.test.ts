import { type ChildProcess, fork } from 'node:child_process'
import { existsSync, realpathSync } from 'node:fs'
import { copyFile, cp, mkdir, mkdtemp, symlink, writeFile } from 'node:fs/promises'
import { dirname, join } from 'node:path'
import ts from 'typescript'
import { afterAll, beforeAll, describe, expect, test, vi } from 'vitest'
import { installInto, packPackage, ROOT } from '../../../test/support/packed-package.js'
import { INTEGRATIONS, installed } from '../support/installed.js'

// A compilation takes a second, and several on a busy machine; the tests wait for one another.
vi.setConfig({ testTimeout: 240_000, hookTimeout: 60_000 })

const RESOLUTIONS = {
  'NodeNext ESM': { type: 'module', options: { module: ts.ModuleKind.NodeNext } },
  'NodeNext CommonJS': { type: 'commonjs', options: { module: ts.ModuleKind.NodeNext } },
  bundler: {
    type: 'module',
    options: { module: ts.ModuleKind.ESNext, moduleResolution: ts.ModuleResolutionKind.Bundler },
  },
  'the old node10': {
    type: 'commonjs',
    options: {
      module: ts.ModuleKind.CommonJS,
      moduleResolution: ts.ModuleResolutionKind.Node10,
      ignoreDeprecations: '6.0',
    },
  },
} as const

type Resolution = keyof typeof RESOLUTIONS
const resolutions = Object.keys(RESOLUTIONS) as Resolution[]
/** For what differs by a package's version: what its resolution finds is tried with all of them. */
const OLDEST_AND_NEWEST = ['the old node10', 'NodeNext ESM'] as const satisfies readonly Resolution[]

let packed: Awaited<ReturnType<typeof packPackage>>
/** Two, for one keeps what it has read of each resolution: the one with the most projects, and the others. Then the older version. */
let compilers: readonly [ChildProcess, ChildProcess, ChildProcess]
beforeAll(async () => {
  const compiler = (version: string) =>
    fork(join(INTEGRATIONS, 'test/support/compiler.mjs'), [version]).setMaxListeners(0)
  compilers = [compiler('typescript'), compiler('typescript'), compiler('typescript59')]
  packed = await packPackage()
  await installInto(packed.folder, packed.tarball, 'module')
})
afterAll(async () => {
  for (const compiler of compilers) compiler.removeAllListeners('exit').kill()
  await packed?.remove()
})

/** Where packages lie that are installed already: their own mistakes are not ours. */
const INSTALLED = [INTEGRATIONS, ROOT].map((folder) => join(realpathSync(join(folder, 'node_modules')), '/'))

/** @types packages by the name under which a consumer finds them. */
const EXPRESS_4 = { express: 'express4' }
const EXPRESS_5 = { express: 'express' }
const CONNECT = { connect: 'connect' }
const NO_FRAMEWORK = {}
const POSTGRES_CLIENTS = { pg: 'pg' }
/** `node:sqlite` has types since Node 22. */
const SQLITE_DRIVERS = { 'better-sqlite3': 'better-sqlite3', node: 'node24' }
/** These bring types of their own. */
const REDIS_CLIENTS = { ioredis: 'ioredis', ioredis5: 'ioredis5', redis: 'redis', redis5: 'redis5' }

/** They bring types of their own, and the package's types add to those; Koa's are in @types. */
const FRAMEWORKS = { hono: 'hono', koa: '@types/koa', fastify: 'fastify', '@opentelemetry/api': '@opentelemetry/api' }
const NEST = { '@nestjs/common': '@nestjs/common', '@nestjs/core': '@nestjs/core', rxjs: 'rxjs', fastify: 'fastify' }

describe.concurrent('the types compile', () => {
  test.each(resolutions)('with @types/express 5, as %s', async (resolution) => {
    expect(await mistakesIn(['express-app.ts'], { resolution, types: EXPRESS_5 })).toEqual([])
  })

  test.each(OLDEST_AND_NEWEST)('with @types/express 4, as %s', async (resolution) => {
    expect(await mistakesIn(['express-app.ts'], { resolution, types: EXPRESS_4 })).toEqual([])
  })

  test.each(resolutions)('with no framework installed, as %s', async (resolution) => {
    const files = [
      'http-app.ts',
      'options.ts',
      'names.ts',
      'redis.ts',
      'postgres.ts',
      'sqlite.ts',
      'run.ts',
      'fetch.ts',
    ]
    expect(await mistakesIn(files, { resolution, types: NO_FRAMEWORK })).toEqual([])
  })

  test.each(resolutions)('of webhook events without zod, and none of them is any, as %s', async (resolution) => {
    const options = { skipLibCheck: true }
    expect(await mistakesIn(['webhooks.ts'], { resolution, types: NO_FRAMEWORK, options })).toEqual([])
  })

  test.each(OLDEST_AND_NEWEST.flatMap((resolution) => (['zod', 'zod3'] as const).map((zod) => ({ resolution, zod }))))(
    'of webhook events with $zod, as $resolution',
    async ({ resolution, zod }) => {
      const files = ['webhooks.ts', 'webhooks-schema.ts']
      expect(await mistakesIn(files, { resolution, types: NO_FRAMEWORK, peers: { zod } })).toEqual([])
    },
  )

  test('with each client of Redis', async () => {
    const resolution = 'NodeNext ESM'
    expect(await mistakesIn(['redis-clients.ts'], { resolution, types: REDIS_CLIENTS })).toEqual([])
  })

  test('with the pool of pg', async () => {
    const setting = { resolution: 'NodeNext ESM', types: POSTGRES_CLIENTS, options: { skipLibCheck: true } } as const
    expect(await mistakesIn(['postgres-clients.ts'], setting)).toEqual([])
  })

  test.each([false, true])('with each driver of SQLite, on TypeScript 5.9: %s', async (isOlder) => {
    const setting = { resolution: 'NodeNext ESM', types: SQLITE_DRIVERS, isOlder } as const
    expect(await mistakesIn(['sqlite-drivers.ts'], setting)).toEqual([])
  })

  test.each([
    { where: 'a browser, without @types/node', options: { lib: ['lib.es2022.d.ts', 'lib.dom.d.ts'], types: [] } },
    { where: 'Node, without those of a browser', options: {} },
  ])('of the client in $where', async ({ options }) => {
    const setting = { resolution: 'bundler', types: NO_FRAMEWORK, options } as const
    expect(await mistakesIn(['client.ts'], setting)).toEqual([])
  })

  test.each(['NodeNext ESM', 'bundler'] as const)(
    'with Hono, Koa and Fastify, whose handlers’ contexts have types, and with OpenTelemetry, as %s',
    async (resolution) => {
      const setting = { resolution, types: NO_FRAMEWORK, peers: FRAMEWORKS }
      expect(await mistakesIn(['frameworks.ts'], setting)).toEqual([])
    },
  )

  test.each(['NodeNext ESM', 'NodeNext CommonJS'] as const)(
    'with Nest, whose requests are those of its platform or the application’s own, as %s',
    async (resolution) => {
      expect(await mistakesIn(['nest.ts'], { resolution, types: EXPRESS_5, peers: NEST })).toEqual([])
    },
  )

  test('with the types of Connect', async () => {
    expect(await mistakesIn(['connect-app.ts'], { resolution: 'NodeNext ESM', types: CONNECT })).toEqual([])
  })

  test('under options laxer than `strict`', async () => {
    const files = ['express-app.ts']
    const lax = { strict: false, exactOptionalPropertyTypes: false }
    // One of its expected errors needs `strictNullChecks`.
    const mistakes = await mistakesIn(files, { resolution: 'NodeNext ESM', types: EXPRESS_5, options: lax })
    expect(mistakes).toEqual([expect.stringMatching(/^express-app\.ts:\d+ TS2578/)])
  })
})

describe.concurrent('the types refuse', () => {
  test.each([
    ['with @types/express 5', EXPRESS_5],
    ['with @types/express 4', EXPRESS_4],
    ['with no framework installed', NO_FRAMEWORK],
  ])('a property of the request that nobody declared, %s', async (_title, types) => {
    const mistakes = await mistakesIn(['undeclared.ts'], { resolution: 'NodeNext ESM', types })
    expect(mistakes).toEqual([expect.stringContaining("TS2339 Property 'merchantId' does not exist")])
  })

  test('zod where it is not there: only the schema needs it', async () => {
    const setting = { resolution: 'NodeNext ESM', types: NO_FRAMEWORK, options: { skipLibCheck: true } } as const
    const mistakes = await mistakesIn(['webhooks-schema.ts'], setting)
    expect(mistakes).toContainEqual(expect.stringContaining("TS2307 Cannot find module 'zod/v4'"))
  })

  test('an import of a framework that is not there', async () => {
    const mistakes = await mistakesIn(['express-app.ts'], { resolution: 'NodeNext ESM', types: NO_FRAMEWORK })
    expect(mistakes).toContainEqual(expect.stringContaining("TS2307 Cannot find module 'express'"))
  })
})

interface Setting {
  readonly resolution: Resolution
  readonly types: Readonly<Record<string, string>>
  readonly options?: ts.CompilerOptions
  /** The installed packages that the consumer, and the package, find as peers, by their names there. */
  readonly peers?: Readonly<Record<string, string>>
  /** By TypeScript 5.9. */
  readonly isOlder?: boolean
}

/** What the compiler says of the files in a project of their own, which finds the packed package and the named types. */
async function mistakesIn(files: readonly string[], setting: Setting): Promise<string[]> {
  const { resolution, types, options, peers, isOlder = false } = setting
  const { type, options: resolutionOptions } = RESOLUTIONS[resolution]
  const project = await mkdtemp(join(packed.folder, 'project-'))
  await mkdir(join(project, 'node_modules/@types'), { recursive: true })
  await writeFile(join(project, 'package.json'), JSON.stringify({ type }))
  for (const [name, source] of Object.entries({ node: 'node', ...types })) {
    await symlink(typesOf(source), join(project, 'node_modules/@types', name), 'junction')
  }
  if (peers !== undefined) {
    // The package looks for its peers where it is itself.
    const name = join('node_modules', 'once-per-key')
    await cp(join(packed.folder, name), join(project, name), { recursive: true })
  }
  for (const [name, source] of Object.entries(peers ?? {})) {
    const place = join(project, 'node_modules', name)
    await mkdir(dirname(place), { recursive: true })
    await symlink(installed(source), place, 'junction')
  }
  for (const file of files) await copyFile(join(INTEGRATIONS, 'test/types/consumers', file), join(project, file))

  const compilerOptions: ts.CompilerOptions = {
    target: ts.ScriptTarget.ES2022,
    lib: ['lib.es2022.d.ts'],
    types: ['node'],
    typeRoots: [join(project, 'node_modules/@types')],
    strict: true,
    exactOptionalPropertyTypes: true,
    esModuleInterop: true,
    noEmit: true,
    skipDefaultLibCheck: true,
    ...resolutionOptions,
    ...options,
  }
  const compiler = compilers[isOlder ? 2 : resolution === 'NodeNext ESM' ? 0 : 1]
  return compile(compiler, { project, files, options: compilerOptions, installed: INSTALLED })
}

/** Of @types, or of a package that brings types of its own. */
function typesOf(name: string): string {
  const declared = installed(`@types/${name}`)
  return existsSync(declared) ? declared : installed(name)
}

let numbers = 0

function compile(compiler: ChildProcess, job: Record<string, unknown>): Promise<string[]> {
  numbers += 1
  const number = numbers
  compiler.send({ ...job, number })
  return new Promise((resolve, reject) => {
    compiler.once('exit', reject)
    compiler.on('message', (reply: { number: number; mistakes: string[] }) => {
      if (reply.number === number) resolve(reply.mistakes)
    })
  })
}
