import { readdirSync } from 'node:fs'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { configDefaults, defineConfig } from 'vitest/config'
import { startsPrograms } from './test/support/starts-programs.js'
import whole, { ALONE, LONG } from './vitest.config.js'

const TEST = fileURLToPath(new URL('test', import.meta.url))
const FOLDERS = ['client', 'core', 'http', 'express', 'run', 'webhooks', 'adapters/memory']

const starting = FOLDERS.flatMap((folder) =>
  readdirSync(join(TEST, folder), { recursive: true, encoding: 'utf8' }).map((name) => join(TEST, folder, name)),
).filter((path) => path.endsWith('.test.ts') && startsPrograms(path))

/** `npm run test:quick`: what needs no server, no build and no other process, in workers that are used again. */
export default defineConfig({
  resolve: whole.resolve ?? {}, // The package by its own name.
  test: {
    include: ['test/layers.test.ts', ...FOLDERS.map((folder) => `test/${folder}/**/*.test.ts`)],
    exclude: [
      ...configDefaults.exclude,
      ...starting,
      ...LONG,
      ...ALONE,
      // They measure, or count the timers of their process.
      'test/adapters/memory/own-bytes.test.ts',
      'test/client/retries.test.ts',
    ],
    isolate: false,
    maxWorkers: '100%',
    testTimeout: 30_000,
  },
})
