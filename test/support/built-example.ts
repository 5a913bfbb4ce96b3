import { copyFile, mkdir, mkdtemp, rm, symlink } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { build, type Options } from 'tsup'
import configs from '../../tsup.config.js'

const root = fileURLToPath(new URL('../..', import.meta.url))

export interface BuiltExample {
  /** The program that `npm start` runs. */
  readonly main: string
  /** The program that `npm run demo:webhooks` runs; it needs Redis. */
  readonly demo: string
  remove(): Promise<void>
}

/**
 * Builds the example as the project does, and the package from today's sources, into a folder of their own: there the
 * example finds the package by its name, through `exports`. Without Redis, neither its client nor its store is there.
 */
export async function buildExample({ withRedis = false } = {}): Promise<BuiltExample> {
  const folder = await mkdtemp(join(tmpdir(), 'payments-example-'))
  const modules = join(folder, 'node_modules')
  const installed = join(modules, 'once-per-key')
  await mkdir(installed, { recursive: true })
  await copyFile(join(root, 'package.json'), join(installed, 'package.json'))
  for (const name of ['express', 'lru-cache', 'pino', 'zod', ...(withRedis ? ['ioredis'] : [])]) {
    await symlink(join(root, 'node_modules', name), join(modules, name), 'dir')
  }

  const { entry, ...library } = configOf('library')
  const { index, core, memory, webhooks, redis } = entry as Record<string, string>
  const needed = { index, core, memory, webhooks, ...(withRedis && { redis }) } as Record<string, string>
  await buildInto(join(installed, 'dist'), { ...library, entry: needed, format: 'esm', dts: false })
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
