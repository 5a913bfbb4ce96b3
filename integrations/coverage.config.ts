import { fileURLToPath } from 'node:url'
import { defineConfig, mergeConfig } from 'vitest/config'
import root from '../vitest.config.js'

/** `npm run test:coverage`: the everyday tests, and how much of the library they run. */
export default mergeConfig(
  root,
  defineConfig({
    root: fileURLToPath(new URL('..', import.meta.url)),
    test: {
      coverage: {
        enabled: true,
        provider: 'custom',
        customProviderModule: fileURLToPath(import.meta.resolve('@vitest/coverage-v8')),
        include: ['src/**', 'adapters/**'],
        thresholds: { lines: 95 },
        // To files only: a run ends with its summary, or with the threshold that it missed.
        reporter: ['html', 'json-summary'],
      },
    },
  }),
)
