import { copyFile, mkdir, mkdtemp, rm, symlink } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { dirname, join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { build, type Options } from 'tsup'
import configs from '../../tsup.config.js'

const root = fileURLToPath(new URL('../..', import.meta.url))

export interface BuiltExample {
  /** The program that `npm start` runs. */
  readonly main: string
  /** The program that `npm run demo:webhooks` runs; it needs the client of Redis. */
  readonly demo: string
  remove(): Promise<void>
}

/** The package of each store's client. */
const CLIENTS = { redis: 'ioredis', postgres: 'pg', sqlite: '@photostructure/sqlite' } as const

/**
 * Builds the example as the project does, and the package from today's sources, into a folder of their own: there the
 * example finds the package by its name, through `exports`. Of the stores but memory, those are there whose client is.
 */
export async function buildExample({
  clients = [],
}: {
  readonly clients?: readonly (keyof typeof CLIENTS)[]
} = {}): Promise<BuiltExample> {
  const folder = await mkdtemp(join(tmpdir(), 'payments-example-'))
  const modules = join(folder, 'node_modules')
  const installed = join(modules, 'once-per-key')
  await mkdir(installed, { recursive: true })
  await copyFile(join(root, 'package.json'), join(installed, 'package.json'))
  for (const name of ['express', 'lru-cache', 'pino', 'zod', ...clients.map((client) => CLIENTS[client])]) {
    await mkdir(dirname(join(modules, name)), { recursive: true })
    await symlink(join(root, 'node_modules', name), join(modules, name), 'dir')
  }

  const { entry, ...library } = configOf('library')
  const names = ['index', 'core', 'memory', 'webhooks', ...clients]
  const needed = Object.fromEntries(
    Object.entries(entry as Record<string, string>).filter(([name]) => names.includes(name)),
  )
  // Rollup and the compiler make it smaller, and a test slower.
  const lightly: Options = { entry: needed, format: 'esm', dts: false, treeshake: false, plugins: [] }
  await buildInto(join(installed, 'dist'), { ...library, ...lightly })
  await buildInto(folder, configOf('example'))

  return {
    main: join(folder, 'examples/payments/main.js'),
    demo: join(folder, 'examples/webhook-receiver/demo.js'),
    remove: () => rm(folder, { recursive: true, force: true }),
  }
}

function configOf(name: string): Options {
  return (configs as Options[]).find((config) => config.name === name) as Options
}

async function buildInto(outDir: string, options: Options): Promise<void> {
  await build({ ...options, outDir, config: false, silent: true, clean: false })
}
