import { defineConfig, mergeConfig } from 'vitest/config'
import integrations from '../../vitest.config.js'

const config = mergeConfig(integrations, defineConfig({}))
delete config.test.projects

/** The playground in a real browser. */
export default {
  ...config,
  test: {
    ...config.test,
    include: ['integrations/test/browser/**/*.test.ts'],
    globalSetup: 'integrations/test/browser/global-setup.ts',
    // Each file has a browser and a service of its own; mostly its stories wait.
    maxWorkers: 2,
    hookTimeout: 60_000,
  },
}
