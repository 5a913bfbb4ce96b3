import { configDefaults, defineConfig } from 'vitest/config'
import whole, { ALONE } from './vitest.config.js'

/** `npm run test:quick`: what needs no server, no build and no other process, in workers that are used again. */
export default defineConfig({
  resolve: whole.resolve ?? {}, // The package by its own name.
  test: {
    include: [
      'test/layers.test.ts',
      'test/{client,core,http,express,run,webhooks}/**/*.test.ts',
      'test/adapters/memory/**/*.test.ts',
    ],
    exclude: [
      ...configDefaults.exclude,
      // They start processes, build, or measure.
      'test/client/{lossy-network,size}.test.ts',
      'test/core/process-exit.test.ts',
      'test/adapters/memory/{cluster,own-bytes,scans}.test.ts',
      'test/run/postgres-transactions.test.ts',
      // They count the timers of their process, or replace a module that others have loaded.
      'test/client/retries.test.ts',
      ...ALONE,
    ],
    isolate: false,
    maxWorkers: '100%',
    testTimeout: 30_000,
  },
})
