import { fileURLToPath } from 'node:url'
import { defineConfig } from 'vitest/config'
import project from '../../vitest.config.js'

/** The playground in a real browser. */
export default defineConfig({
  root: fileURLToPath(new URL('../..', import.meta.url)),
  resolve: project.resolve ?? {},
  test: {
    include: ['test/browser/**/*.test.ts'],
    globalSetup: 'test/browser/global-setup.ts',
    // Each file has a browser and a service of its own; mostly its stories wait.
    maxWorkers: 2,
    testTimeout: 30_000,
    hookTimeout: 60_000,
    retry: project.test?.retry ?? 0,
    reporters: project.test?.reporters ?? ['default'],
  },
})
